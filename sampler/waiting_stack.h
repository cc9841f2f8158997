/* SPDX-License-Identifier: MIT */
/*
 * The C stacks of threads that wait inside of the kernel, which tells two of their registers:
 * where they stand and where their stack is. Most functions need no more to be unwound, or have
 * called one that has saved what they need. Where the frame pointer is needed (CPython 3.15 is
 * built with them) the code of the function tells it (symbols/frame_pointers.h), and it has to
 * prove right: the stack goes on to where the thread began, and through all calls of the
 * interpreter's loop at the addresses and at the one distance that Python tells.
 */
#pragma once

#include "procmem/task.h"
#include "sampler/native_stacks.h"
#include "sampler/python/loop_entries.h"
#include "symbols/frame_pointers.h"

/* Private. */
struct waiting_stacks {
	struct native_stacks *natives; /* borrowed */
	struct stack_window window;
	struct frame_pointers pointers;
};

/*
 * Initialise for natives that keep registers, and the memory that their stacks and their code are
 * in; both are borrowed. 0 or -ENOMEM. waiting_stacks_done() accepts one that is zero.
 */
int waiting_stacks_init(struct waiting_stacks *waiting, struct remote_memory *memory,
			struct native_stacks *natives);
void waiting_stacks_done(struct waiting_stacks *waiting);

/* Where the loops of a thread are that waits, as Python tells. */
struct waiting_loops {
	remote_addr *addrs; /* of what loop_entries.h tells, one for each loop */
	uint32_t nr;
	uint32_t distance_bytes; /* that of loop_bridge.h; 0: not known */
};

/*
 * Of entries, one for each frame: ret_loops->addrs is to be given to free(). 0 or -ENOMEM.
 */
int waiting_loops_find(const struct loop_entry *entries, uint32_t nr_frames,
		       uint32_t distance_bytes, struct waiting_loops *ret_loops);

/*
 * Unwind the stack of a thread that stands at place, as native_stacks_unwind() does. The loops
 * were read while it stood there.
 */
void waiting_stacks_unwind(struct waiting_stacks *waiting, const struct task_place *place,
			   const struct waiting_loops *loops);
