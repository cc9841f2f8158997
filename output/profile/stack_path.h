/* SPDX-License-Identifier: MIT */
/* The frames of one stack of a profile, for writers that write whole stacks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/profile.h"

/* All zero it is empty. Used for many stacks, it keeps the room of the deepest. */
struct stack_path {
	uint32_t *frames; /* owned; outermost first, from start on */
	size_t start, max;
};

void stack_path_done(struct stack_path *path);

/* Read the stack of a node. 0 or -ENOMEM. */
int stack_path_read(struct stack_path *path, const struct profile *profile, uint32_t node);
