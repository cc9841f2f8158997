/* SPDX-License-Identifier: MIT */
/*
 * A doubly linked list in the memory of a target that changes it meanwhile. Each entry has to
 * point back to the one before it, else the list is torn, and walked again from its beginning.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

/* Entries of a list; one of more is as one that is torn. A CPython that made much code had 420. */
#define REMOTE_LIST_MAX_ENTRIES 65536

/* So often a list is walked that changes meanwhile. */
#define REMOTE_LIST_MAX_TRIES 3

struct remote_list;

struct remote_list_ops {
	/*
	 * A walk begins: *ret_first_addr is the first entry, 0 if there is none. 0; -EAGAIN (it
	 * cannot be told now); or an error that ends all walks.
	 */
	int (*read_head)(struct remote_list *list, remote_addr *ret_first_addr);

	/*
	 * Read the entry at addr, and go no further if it does not point back to prev_addr (0:
	 * it is the first one): -EAGAIN. *ret_next_addr is the next one, 0 if there is none. 0, or
	 * errors as above.
	 */
	int (*read_entry)(struct remote_list *list, remote_addr addr, remote_addr prev_addr,
			  remote_addr *ret_next_addr);
};

/* The first member of what is to be walked. */
struct remote_list {
	const struct remote_list_ops *ops;
};

/*
 * Walk a list from its first to its last entry, which may take several walks. 0; -EAGAIN: none
 * came to the end, but what was read was on the list; or the error of an operation.
 */
int remote_list_walk(struct remote_list *list);
