/* SPDX-License-Identifier: MIT */
/*
 * What the two copies of a link say of a generator: whether it is one, whether they agree, who
 * drives it and how fast it turns over.
 */
#pragma once

#include "sampler/python/stack_copy.h"

/* Whether a link is a generator's (or coroutine's) frame, so far as its copy tells. */
bool link_is_generator(const struct link_copy *link, const struct py_offsets *offsets);

/* Whether both copies of a generator show the same function, and the same caller or none. */
bool link_agrees(const struct link_copy *link, const struct py_offsets *offsets);

/* Whether a copy of a generator shows it running. */
bool link_seen_running(const struct link_copy *link, const struct py_offsets *offsets);

/*
 * Whether the second copy of a generator finds it in another state than the first, a
 * microsecond or two earlier, one time in eight or more often.
 */
bool link_is_fast(const struct link_copy *link);

/*
 * Whether generators of several functions take turns in that memory so fast that two equal
 * copies prove little: what they show may have gone and come again, in step with the copying.
 */
bool link_is_blurred(const struct link_copy *link);

/*
 * Learn from a generator that was just copied who drives it and how fast it turns
 * over; another function's in the same memory begins without a driver.
 */
void link_learn(struct link_copy *link, const struct py_offsets *offsets, uint64_t tick);
