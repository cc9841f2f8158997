/* SPDX-License-Identifier: MIT */
/* Sets and frozensets of the target: a table of slots, a member in some of them. */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/layout/value_offsets.h"

/* So many slots are read at a time. */
#define SET_PIECE_SLOTS 64

/* A set as it was when it was opened; nothing of it is owned. */
struct set {
	uint64_t nr_used;  /* members */
	uint64_t nr_slots; /* a power of two */

	/* Private. */
	remote_addr table_addr;
	uint64_t next; /* slot */
	uint8_t slots[SET_PIECE_SLOTS][SET_ENTRY_BYTES];
};

/*
 * Open the set object at addr. 0; -EBADMSG (this is no set, or it was torn), -EFAULT, -ESRCH,
 * -EPERM.
 *
 * Source: CPython Include/setobject.h (cpython/setobject.h), Objects/setobject.c.
 */
int set_open(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	     struct set *ret_set);

/*
 * The next member, in the order of the slots, which is that of repr(). 0; -ENOENT (there are no
 * more); -EFAULT, -ESRCH, -EPERM.
 */
int set_next(struct remote_memory *memory, struct set *set, remote_addr *ret_member_addr);
