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

bool function_tree_is_large(const struct profile *profile, enum profile_side side, uint64_t ns,
			    unsigned min_permille)
{
	const uint64_t whole_ns = profile_sums(profile, side)->time_ns;

	return ns && (double)ns * 1000 >= (double)whole_ns * min_permille;
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

static bool is_large(const struct function_node *node, const struct profile *profile,
		     unsigned min_permille)
{
	for (int side = 0; side < NR_PROFILE_SIDES; side++)
		if (function_tree_is_large(profile, side, node->total[side].ns, min_permille))
			return true;
	return false;
}

/* Keep the large nodes. A parent is at least as large as its child. Returns 0 or -ENOMEM. */
static int prune(struct function_tree *tree, const struct profile *profile, unsigned min_permille)
{
	cleanup_free uint32_t *kept = calloc((size_t)tree->nr_nodes + 1, sizeof(*kept));
	uint32_t nr = 0;

	if (!kept)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->nr_nodes; i++) {
		struct function_node node = tree->nodes[i];

		if (!is_large(&node, profile, min_permille))
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
		       unsigned min_permille)
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
	return prune(tree, graph->profile, min_permille);
}
