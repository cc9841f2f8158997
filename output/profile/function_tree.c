/* SPDX-License-Identifier: MIT */
#include "output/profile/function_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "output/tables/pair_map.h"
#include "procmem/cleanup.h"

void function_tree_done(struct function_tree *tree)
{
	free(tree->nodes);
	*tree = (struct function_tree){.nodes = NULL};
}

/* Returns the largest of the shares that weights have of the time of their sides. */
static double share_of(const struct profile *profile, const struct profile_weight *totals)
{
	double share = 0;

	for (int side = 0; side < NR_PROFILE_SIDES; side++) {
		const uint64_t whole_ns = profile_sums(profile, side)->time_ns;
		const double part = whole_ns ? (double)totals[side].ns / (double)whole_ns : 0;

		if (part > share)
			share = part;
	}
	return share;
}

bool function_tree_is_large(const struct profile *profile, const struct profile_weight *totals,
			    unsigned min_permille)
{
	const double share = share_of(profile, totals);

	return share > 0 && share * 1000 >= min_permille;
}

static void weight_add(struct profile_weight *sum, struct profile_weight weight)
{
	sum->samples += weight.samples;
	sum->ns += weight.ns;
}

/* Find the node of a function below a parent, or append it. Returns 0 or -ENOMEM. */
static int node_get(struct function_tree *tree, struct pair_map *of_call, uint32_t parent,
		    uint32_t vertex, uint32_t *ret_node)
{
	int err;

	*ret_node = pair_map_find(of_call, parent, vertex);
	if (*ret_node != PAIR_MAP_NONE)
		return 0;
	err = pair_map_add(of_call, parent, vertex, tree->nr_nodes);
	if (err)
		return err;
	*ret_node = tree->nr_nodes++;
	tree->nodes[*ret_node] = (struct function_node){.parent = parent, .vertex = vertex};
	return 0;
}

/* Merge all nodes of the profile. Returns 0 or -ENOMEM. */
static int merge(struct function_tree *tree, const struct call_graph *graph)
{
	uint32_t nr_nodes;
	const struct profile_node *nodes = profile_nodes(graph->profile, &nr_nodes);
	cleanup_free uint32_t *merged = calloc((size_t)nr_nodes + 1, sizeof(*merged));
	struct pair_map of_call = {0};
	int err = 0;

	tree->nodes = calloc((size_t)nr_nodes + 1, sizeof(*tree->nodes));
	if (!merged || !tree->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < nr_nodes; i++) {
		const uint32_t parent = nodes[i].parent;

		err = node_get(tree, &of_call, parent == PROFILE_NONE ? parent : merged[parent],
			       graph->vertex_of_frame[nodes[i].frame], &merged[i]);
		for (int side = 0; !err && side < NR_PROFILE_SIDES; side++)
			weight_add(&tree->nodes[merged[i]].self[side],
				   profile_weight(graph->profile, side, i));
	}
	pair_map_done(&of_call);
	return err;
}

/* The larger share first, then the earlier node, so that parents precede their children. */
static int compare_nodes(const void *left, const void *right, void *context)
{
	const double *shares = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (shares[a] != shares[b])
		return shares[a] < shares[b] ? 1 : -1;
	return (a > b) - (a < b);
}

/*
 * Keep the large nodes. They are a tree, too: a parent is at least as large as its child. Returns 0
 * or -ENOMEM.
 */
static int prune(struct function_tree *tree, const struct profile *profile, unsigned min_permille,
		 uint32_t max_nodes)
{
	cleanup_free double *shares = calloc((size_t)tree->nr_nodes + 1, sizeof(*shares));
	cleanup_free uint32_t *large = calloc((size_t)tree->nr_nodes + 1, sizeof(*large));
	cleanup_free uint32_t *kept = calloc((size_t)tree->nr_nodes + 1, sizeof(*kept));
	uint32_t nr_large = 0, nr = 0;

	if (!shares || !large || !kept)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->nr_nodes; i++) {
		shares[i] = share_of(profile, tree->nodes[i].total);
		kept[i] = PROFILE_NONE;
		if (function_tree_is_large(profile, tree->nodes[i].total, min_permille))
			large[nr_large++] = i;
	}
	if (nr_large > max_nodes) {
		qsort_r(large, nr_large, sizeof(*large), compare_nodes, shares);
		nr_large = max_nodes;
	}
	for (uint32_t i = 0; i < nr_large; i++)
		kept[large[i]] = 0;
	for (uint32_t i = 0; i < tree->nr_nodes; i++) {
		struct function_node node = tree->nodes[i];

		if (kept[i] == PROFILE_NONE)
			continue;
		if (node.parent != PROFILE_NONE)
			node.parent = kept[node.parent];
		kept[i] = nr;
		tree->nodes[nr++] = node;
	}
	tree->nr_nodes = nr;
	return 0;
}

int function_tree_init(struct function_tree *tree, const struct call_graph *graph,
		       unsigned min_permille, uint32_t max_nodes)
{
	int err;

	*tree = (struct function_tree){.nodes = NULL};
	err = merge(tree, graph);
	if (err)
		return err;
	/* Children come after their parents, so going backwards each total is complete. */
	for (uint32_t i = tree->nr_nodes; i-- > 0;) {
		struct function_node *node = &tree->nodes[i];

		for (int side = 0; side < NR_PROFILE_SIDES; side++) {
			weight_add(&node->total[side], node->self[side]);
			if (node->parent != PROFILE_NONE)
				weight_add(&tree->nodes[node->parent].total[side],
					   node->total[side]);
		}
	}
	return prune(tree, graph->profile, min_permille, max_nodes);
}
