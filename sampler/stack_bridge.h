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

/*
 * Lead the stack that was unwound last on from loop to loop, as far as it can be, if it has come to
 * a hole, and it is known how loops are found. window is what it was unwound from.
 */
void stack_bridge_cross(struct native_stacks *natives, struct stack_window *window,
			const struct loop_places *places, const struct code_cache *codes);
