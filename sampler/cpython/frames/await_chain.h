/* SPDX-License-Identifier: MIT */
/*
 * The frames of a coroutine that is suspended: its own, and those of what it awaits, and so on.
 *
 * A coroutine, generator or asynchronous generator has its frame inside of it, and keeps what it
 * awaits on that frame's stack. In between may be objects that only pass on: what `__await__()`
 * of a coroutine, or `asend()` and `athrow()` of an asynchronous generator, give. What is none of
 * these, as the iterator of a future, ends the chain.
 *
 * Source: CPython 3.14 and 3.15 Objects/genobject.c, _PyGen_yf().
 */
#pragma once

#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/objects/value_types.h"

/*
 * Longer chains are cut: -E2BIG. Each await is a call of C to C when it is resumed, so CPython's
 * recursion limit, 1000 unless a program raises it, holds for them as well.
 */
enum { AWAIT_CHAIN_MAX = 1 << 14 };

/*
 * Walk the chain that begins with the coroutine at coro_addr into list, outermost frame first.
 * The list tells as ever whether it is another one than before (nr_unchanged).
 *
 * 0; -EAGAIN, -EBADMSG (the objects do not hang together), -EFAULT, -E2BIG (too long, or in a
 * circle), -ENOMEM, -ESRCH, -EPERM; list then holds what was walked. The objects are read from
 * memory, code objects from that of codes, whose build has traits.generator_states.
 */
int await_chain_walk(struct code_cache *codes, struct remote_memory *memory,
		     struct type_cache *types, const struct code_clock *clock,
		     remote_addr coro_addr, struct frame_list *list);
