/* SPDX-License-Identifier: MIT */
/*
 * Walks a profile's tree of stacks from callers to callees, in time linear in the nodes and
 * without recursion, because the target decides how deep the tree is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"

struct tree_walk {
	const struct profile_node *nodes; /* borrowed from the profile */
	uint32_t nr_nodes;
	/* Owned; nr_nodes + 1 entries: the last is for the outermost nodes. */
	uint32_t *first_child;
	uint32_t *next_sibling; /* owned; PROFILE_NONE ends the list, as in first_child */
	/* Owned; each node with all below it; the last entry is the total. */
	struct profile_weight *sums;
};

/*
 * Link the children of each node in node order, and compute the sums. Returns 0 or -ENOMEM; call
 * tree_walk_done() either way.
 */
int tree_walk_init(struct tree_walk *walk, const struct profile *profile, enum profile_side side);

/* Free the tables, whether tree_walk_init() succeeded or not. */
void tree_walk_done(struct tree_walk *walk);

/* Position of a walk. It enters a node, walks what is below it, and leaves it. */
struct tree_step {
	uint32_t node;
	bool is_exit;
};

/* The position before the first step. */
#define TREE_STEP_BEGIN ((struct tree_step){PROFILE_NONE, false})

/* Advance to the next step. Returns false after the last one. */
bool tree_walk_next(const struct tree_walk *walk, struct tree_step *step);
