/* SPDX-License-Identifier: MIT */
/* The frames of one stack of a profile, for writers that write whole stacks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/profile.h"

/* Empty when all zero. Reused for many stacks; its room is that of the deepest. */
struct stack_path {
	uint32_t *frames; /* owned; outermost first, in [start, max) */
	size_t start, max;
};

void stack_path_done(struct stack_path *path);

/* Read the stack of a node. Returns 0 or -ENOMEM. */
int stack_path_read(struct stack_path *path, const struct profile *profile, uint32_t node);
