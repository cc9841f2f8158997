/* SPDX-License-Identifier: MIT */
/*
 * Stacks that lead through code of which nothing tells how it is unwound: what CPython 3.14's JIT
 * makes, numba's kernels, extensions without call frame information. Behind it there is a call of
 * the interpreter's loop again. Where that is Python's frames tell (loop_entries.h), and it is at the
 * same distance from the end of its C frame in all calls: unwinding goes on there, and a hole says so.
 */
#pragma once

#include "sampler/native_stacks.h"
#include "sampler/python/loop_entries.h"

/* What is known of a program's loop. All zero: nothing yet. */
struct loop_bridge {
	uint32_t distance_bytes; /* from what an entry names to the end of its C frame */
	remote_addr lookup_addr; /* of an instruction of a loop that has called; 0: not known */
};

/*
 * Learn from the stack that was unwound last, and lead it on from loop to loop as far as it can be, if
 * it has come to a hole. entries are those of its Python frames, of the same moment; window is its
 * memory.
 */
void loop_bridge_cross(struct loop_bridge *bridge, struct native_stacks *stacks,
		       const struct loop_entry *entries, uint32_t nr_entries,
		       struct stack_window *window);
