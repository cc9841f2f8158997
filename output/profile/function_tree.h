/* SPDX-License-Identifier: MIT */
/*
 * A profile's tree of stacks by function: nodes of one function below one caller are one node,
 * whichever of their lines were executing. Small nodes are left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/call_graph.h"
#include "output/profile/profile.h"

struct function_node {
	uint32_t parent; /* PROFILE_NONE for outermost nodes; comes before the node */
	uint32_t vertex; /* of the call graph */
	struct profile_weight self[NR_PROFILE_SIDES], total[NR_PROFILE_SIDES];
};

struct function_tree {
	struct function_node *nodes; /* owned */
	uint32_t nr_nodes;
};

/*
 * Build the tree of the profile that a call graph is of, with the nodes that are large
 * (function_tree_is_large()), or the max_nodes largest of them. Returns 0 or -ENOMEM; call
 * function_tree_done() either way.
 */
int function_tree_init(struct function_tree *tree, const struct call_graph *graph,
		       unsigned min_permille, uint32_t max_nodes);

/* Free the nodes, whether function_tree_init() succeeded or not. */
void function_tree_done(struct function_tree *tree);

/* Whether weights, by side, have at least min_permille of the time of all samples of any side. */
bool function_tree_is_large(const struct profile *profile, const struct profile_weight *totals,
			    unsigned min_permille);
