/* SPDX-License-Identifier: MIT */
/*
 * Walks a profile's tree of stacks from callers to callees, in time that is linear in its
 * nodes and without recursion: the target decides how deep it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"

struct tree_walk {
	const struct profile_node *nodes; /* borrowed from the profile */
	uint32_t nr_nodes;
	uint32_t *first_child;	/* owned; one more than nodes: the last one's are the outermost */
	uint32_t *next_sibling; /* owned; PROFILE_NONE ends, as in first_child */
	struct profile_weight *sums; /* owned; of each node with all below it; the last: of all */
};

/* Link the children of each node in the order of the nodes, and sum up. 0 or -ENOMEM. */
int tree_walk_init(struct tree_walk *walk, const struct profile *profile, enum profile_side side);

/* Free what it holds, whether tree_walk_init() succeeded or not. */
void tree_walk_done(struct tree_walk *walk);

/* Where a walk is: it enters a node, walks what is below it, and leaves it. */
struct tree_step {
	uint32_t node;
	bool leaves;
};

/* Before the first step. */
#define TREE_STEP_BEGIN ((struct tree_step){PROFILE_NONE, false})

/* Go on to the next step; false if that was the last one. */
bool tree_walk_next(const struct tree_walk *walk, struct tree_step *step);
