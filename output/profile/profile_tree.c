/* SPDX-License-Identifier: MIT */
#include "output/profile/profile_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"

void profile_tree_done(struct profile_tree *tree)
{
	function_rows_done(&tree->functions);
	free(tree->frames);
	pair_map_done(&tree->frame_of_line);
	free(tree->nodes);
	pair_map_done(&tree->node_of_call);
}

bool profile_tree_is_full(const struct profile_tree *tree)
{
	return tree->nr_nodes + 2 >= tree->max_nodes;
}

int profile_tree_get_function(struct profile_tree *tree, const struct function *function,
			      uint32_t *ret_function)
{
	const uint32_t index = function_rows_search(&tree->functions, function);

	if (index == PROFILE_NONE)
		return profile_tree_is_full(tree)
			       ? -E2BIG
			       : function_rows_append(&tree->functions, function, ret_function);
	*ret_function = index;
	return 0;
}

static int frame_add(struct profile_tree *tree, const struct profile_frame *frame,
		     uint32_t *ret_index)
{
	struct profile_frame *frames;

	frames = array_reserve(tree->frames, tree->nr_frames + 1, &tree->max_frames,
			       sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	tree->frames = frames;
	frames[tree->nr_frames] = *frame;
	*ret_index = tree->nr_frames++;
	return 0;
}

int profile_tree_get_frame(struct profile_tree *tree, uint32_t function, int32_t line,
			   uint32_t *ret_frame)
{
	uint32_t index = pair_map_find(&tree->frame_of_line, function, (uint32_t)line);
	struct profile_frame frame = {.function = function, .line = line, .thread = PROFILE_NONE};
	int err;

	if (index != PAIR_MAP_NONE) {
		*ret_frame = index;
		return 0;
	}
	if (profile_tree_is_full(tree))
		return -E2BIG;
	err = frame_add(tree, &frame, &index);
	if (err)
		return err;
	err = pair_map_add(&tree->frame_of_line, function, (uint32_t)line, index);
	if (err) {
		tree->nr_frames--;
		return err;
	}
	*ret_frame = index;
	return 0;
}

static int node_add(struct profile_tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	struct profile_node *nodes;
	int err;

	nodes = array_reserve(tree->nodes, tree->nr_nodes + 1, &tree->nodes_capacity,
			      sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	err = pair_map_add(&tree->node_of_call, parent, frame, tree->nr_nodes);
	if (err)
		return err;
	nodes[tree->nr_nodes] = (struct profile_node){.parent = parent, .frame = frame};
	*ret_node = tree->nr_nodes++;
	return 0;
}

/* Return whether a row's frames have no nodes of their own. */
static bool is_folded(const struct profile_tree *tree, uint32_t frame)
{
	return !tree->keep_plumbing &&
	       tree->functions.rows[tree->frames[frame].function].is_plumbing;
}

int profile_tree_get_node(struct profile_tree *tree, uint32_t parent, uint32_t frame,
			  uint32_t *ret_node)
{
	uint32_t index;

	if (is_folded(tree, frame)) {
		*ret_node = parent;
		return 0;
	}
	index = pair_map_find(&tree->node_of_call, parent, frame);
	if (index == PAIR_MAP_NONE)
		return profile_tree_is_full(tree) ? -E2BIG
						  : node_add(tree, parent, frame, ret_node);
	*ret_node = index;
	return 0;
}

bool profile_tree_is_root(const struct profile_tree *tree, uint32_t node)
{
	return node == PROFILE_NONE ||
	       tree->frames[tree->nodes[node].frame].function == PROFILE_NONE;
}

int profile_tree_add_root(struct profile_tree *tree, const struct profile_frame *frame,
			  uint32_t *ret_node)
{
	uint32_t index;
	int err = frame_add(tree, frame, &index);

	if (err)
		return err;
	err = node_add(tree, PROFILE_NONE, index, ret_node);
	if (err)
		tree->nr_frames--;
	return err;
}
