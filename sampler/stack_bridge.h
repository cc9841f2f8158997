/* SPDX-License-Identifier: MIT */
/*
 * Stacks that lead through code of which nothing tells how it is unwound: what CPython 3.14's JIT
 * makes, numba's kernels, extensions without call frame information. Behind it there is a call of
 * the interpreter's loop again, known by the entry frame that it has in its C frame, at the same
 * distance from the end in all calls: unwinding goes on there, and a hole says so.
 */
#pragma once

#include "sampler/loop_places.h"
#include "sampler/native_stacks.h"
#include "sampler/python/code.h"
#include "sampler/python/frame_list.h"

/*
 * Learn from a stack that came to a hole before a loop was met where loops have their entry frames:
 * late, Python's frames of a moment later, names some that are in the copy. The return address of
 * a loop is the first above its entry frame from which the stack goes on to where the thread began.
 */
void stack_bridge_learn(struct native_stacks *natives, struct stack_window *window,
			struct loop_places *places, const struct code_cache *codes,
			const struct frame_list *late);

/*
 * Lead the stack that was unwound last on from loop to loop, as far as it can be, if it has come to
 * a hole, and it is known where loops have their entry frames. window is what it was unwound from.
 */
void stack_bridge_cross(struct native_stacks *natives, struct stack_window *window,
			const struct loop_places *places, const struct code_cache *codes);
