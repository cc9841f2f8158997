/* SPDX-License-Identifier: MIT */
/*
 * Stacks that lead through code of which nothing tells how it is unwound: what CPython 3.14's JIT
 * makes, numba's kernels, extensions without call frame information. Behind it there is a call of
 * the interpreter's loop again, known by the entry that it has in its C frame (dumped_entry.h), at
 * the same distance from the end in all calls: unwinding goes on there, and a hole says so.
 */
#pragma once

#include "sampler/dumped_stack.h"

/*
 * Learn from a stack that came to a hole before a loop was met where loops have their entries: of
 * Python's frames of a moment later some have loops that are in the copy. The return address of
 * a loop is the first above its entry from which the stack goes on to where the thread began.
 */
void stack_bridge_learn(const struct dumped_stack *stack);

/*
 * Lead the stack that was unwound last on from loop to loop, as far as it can be, if it has come to
 * a hole, and it is known where loops have their entries. The later look is not needed.
 */
void stack_bridge_cross(const struct dumped_stack *stack);
