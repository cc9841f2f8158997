/* SPDX-License-Identifier: MIT */
/*
 * The calls of the interpreter's loop in a copied stack: which C frames they are, and how they
 * have been called.
 */
#pragma once

#include "sampler/dumped_entry.h"
#include "sampler/dumped_stack.h"

/* One call of the loop. */
struct dumped_loop {
	struct loop_frame frame;
	struct dumped_entry entry;
	remote_addr entry_addr;
	remote_addr lookup_addr; /* of the call that it is in; 0: it is the innermost C frame */
	remote_addr return_addr; /* where its caller goes on; 0: it is the outermost C frame */
	remote_addr inner_sp;	 /* of the C frame that it has called; 0: likewise */
	bool is_lone;	/* called through a trampoline: then it runs one frame and no other */
	bool is_in_jit; /* code that CPython's JIT made runs for it */
};

struct dumped_loops {
	struct dumped_loop loops[DUMPED_STACK_MAX_LOOPS]; /* innermost first */
	uint32_t nr;
};

/* Find them, as soon as it is known where loops have their entries. */
void dumped_loops_find(const struct dumped_stack *stack, struct dumped_loops *loops);

/*
 * Whether a loop that has called into C is in that call still, as far as return addresses tell: all
 * that were in its part of the stack, and in that of what it called, are there now. What Python
 * tells of it was read before now.
 */
bool dumped_loops_is_still(const struct dumped_stack *stack, const struct dumped_loop *loop);

/*
 * Learn from one stack more where loops keep what they work with. Nothing is taken on trust:
 * late may be of another moment.
 */
void dumped_loops_learn(const struct dumped_stack *stack);
