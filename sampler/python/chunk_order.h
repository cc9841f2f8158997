/* SPDX-License-Identifier: MIT */
/*
 * Which data-stack chunk follows which, by their copied headers. CPython keeps one chunk
 * that was dropped and takes it first when it needs one again, and gives others back: the
 * same few chunks come in another order every time.
 */
#pragma once

#include "sampler/python/offsets.h"
#include "sampler/python/stack_copy.h"

/* Whether a chunk was seen popped not long ago. */
bool chunk_comes_and_goes(const struct stack_copy *stack, const struct chunk_copy *chunk);

/*
 * Put the chunks of stack in the order in which their headers name one another, the oldest
 * first; those that were popped come behind. A chunk that is not named keeps its place, and
 * so do those that were not copied (first_chunk).
 */
void chunk_order_renew(struct stack_copy *stack, const struct py_offsets *offsets);
