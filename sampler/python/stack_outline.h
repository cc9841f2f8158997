/* SPDX-License-Identifier: MIT */
/*
 * Where the frames of a thread lie in its data-stack chunks (3.11 and newer), told by the
 * chunks alone: a frame is as long as its code object says, and its callee begins where it
 * ends. For stacks whose links lead to nothing: those of core files that lack the C stack.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/frames.h"

/* All zero it is empty. */
struct stack_outline {
	remote_addr *frame_addrs; /* outermost first; owned */
	uint32_t nr_frames;
	bool has_gaps; /* some of the chunks could not be read, or hold what is no frame */
};

/* The address of the outermost frame that there may be; 0: it cannot be told. */
remote_addr stack_outline_bottom(struct code_cache *codes, const struct stack_ends *ends);

/*
 * Find the frames. What is no frame is passed over, up to OUTLINE_MAX_SKIPS words of all
 * chunks. 0; -ENOMEM, -ESRCH, -EPERM. stack_outline_done() accepts one that is zero.
 */
#define OUTLINE_MAX_SKIPS (64u << 10)
int stack_outline_learn(struct code_cache *codes, const struct code_clock *clock,
			const struct stack_ends *ends, struct stack_outline *ret_outline);
void stack_outline_done(struct stack_outline *outline);
