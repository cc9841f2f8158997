/* SPDX-License-Identifier: MIT */
/* A growing list of addresses in the target. */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

#define ADDR_LIST_NONE UINT32_MAX

/* Empty if all zero. */
struct addr_list {
	remote_addr *addrs; /* owned */
	uint32_t nr, max;
};

/* Free the list and leave it empty. Accepts NULL. */
void addr_list_done(struct addr_list *list);

/* Returns 0 or -ENOMEM. */
int addr_list_append(struct addr_list *list, remote_addr addr);

/* Sort the list, and leave out what is in it twice. */
void addr_list_sort(struct addr_list *list);

/* Returns the index of an address in a sorted list, or ADDR_LIST_NONE. */
uint32_t addr_list_find(const struct addr_list *list, remote_addr addr);
