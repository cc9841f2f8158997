/* SPDX-License-Identifier: MIT */
/* Sets and frozensets of the target: a table of slots, a member in some of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

/* So many slots are read at a time. */
#define SET_PIECE_SLOTS 64

/* A set as it was when it was opened; nothing of it is owned. */
struct set {
	uint64_t nr_used;  /* members */
	uint64_t nr_slots; /* a power of two */
	remote_addr table_addr;
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
 * Read the members in nr slots, SET_PIECE_SLOTS at most, from the slot first on: 0 for a slot
 * that has none. In the order of the slots, which is that of repr(). 0; -EFAULT, -ESRCH, -EPERM.
 */
int set_read(struct remote_memory *memory, const struct set *set, uint64_t first, size_t nr,
	     remote_addr ret_members[SET_PIECE_SLOTS]);
