/* SPDX-License-Identifier: MIT */
/*
 * Walks a doubly linked list in the memory of a target that may change it meanwhile. Each entry
 * must point back to the one before it; otherwise the list is torn, and is walked again from its
 * start.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

/*
 * Limit on the entries of a list; a longer one counts as torn. A CPython with much JIT code had
 * 420.
 */
#define REMOTE_LIST_MAX_ENTRIES 65536

/* Limit on the walks of a list that changes meanwhile. */
#define REMOTE_LIST_MAX_TRIES 3

struct remote_list;

struct remote_list_ops {
	/*
	 * Begin a walk. *ret_first_addr is the first entry, or 0 if there is none. Returns 0;
	 * -EAGAIN if it is unknown at the moment; or an error that ends all walks.
	 */
	int (*read_head)(struct remote_list *list, remote_addr *ret_first_addr);

	/*
	 * Read the entry at addr. If it does not point back to prev_addr (0 for the first entry)
	 * return -EAGAIN. *ret_next_addr is the next entry, or 0 if there is none. Returns 0, or
	 * errors as above.
	 */
	int (*read_entry)(struct remote_list *list, remote_addr addr, remote_addr prev_addr,
			  remote_addr *ret_next_addr);
};

/* The first member of every walker. */
struct remote_list {
	const struct remote_list_ops *ops;
};

/*
 * Walk a list from its first to its last entry, several times if necessary. Returns 0; -EAGAIN if
 * no walk reached the end, although the entries read were on the list; or the error of an
 * operation.
 */
int remote_list_walk(struct remote_list *list);
