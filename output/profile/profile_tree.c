/* SPDX-License-Identifier: MIT */
#include "output/profile/profile_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/*
 * A path gives memory back after SHALLOW_SAMPLES samples that each needed less than one
 * SHALLOW_PART of its room, unless it has at most SHALLOW_LEAST nodes.
 */
enum { SHALLOW_SAMPLES = 4096, SHALLOW_PART = 8, SHALLOW_LEAST = 128 };

/* Room for PROFILE_OTHER_STACKS and for the roots that threads and processes share. */
enum { RESERVED_NODES = 3 };

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
	return tree->nr_nodes + RESERVED_NODES >= tree->max_nodes;
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
	struct profile_frame frame = {.function = function, .line = line, .owner = PROFILE_NONE};
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

/* Whether a row's frames have no nodes of their own. */
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

int profile_tree_add_root(struct profile_tree *tree, uint32_t parent,
			  const struct profile_frame *frame, uint32_t *ret_node)
{
	uint32_t index;
	int err = frame_add(tree, frame, &index);

	if (err)
		return err;
	err = node_add(tree, parent, index, ret_node);
	if (err)
		tree->nr_frames--;
	return err;
}

/* Paths. */

void thread_paths_done(struct thread_paths *paths)
{
	for (uint32_t i = 0; i < paths->nr; i++)
		free(paths->paths[i].nodes);
	free(paths->paths);
	*paths = (struct thread_paths){0};
}

struct thread_path *thread_paths_find(const struct thread_paths *paths,
				      const struct sample_thread *thread)
{
	struct thread_path *path;

	if (thread->slot >= paths->nr)
		return NULL;
	path = &paths->paths[thread->slot];
	return path->is_used && path->id == thread->id ? path : NULL;
}

int thread_paths_begin(struct thread_paths *paths, const struct sample_thread *thread,
		       struct thread_path **ret_path)
{
	const uint32_t nr = paths->nr;
	struct thread_path *all, *path;

	if (thread->slot == PROFILE_NONE)
		return -ENOMEM;
	all = array_reserve(paths->paths, thread->slot + 1, &paths->nr, sizeof(*all));
	if (!all)
		return -ENOMEM;
	memset(all + nr, 0, (paths->nr - nr) * sizeof(*all));
	paths->paths = all;
	path = &all[thread->slot];
	path->is_used = path->is_placed = path->has_waited = false;
	path->id = thread->id;
	path->row = PROFILE_NONE;
	path->root = PROFILE_NONE;
	path->nr_nodes = 0;
	*ret_path = path;
	return 0;
}

/* Find or add the row of a sample's frame. */
static int sample_frame_get(struct profile_tree *tree, const struct frame *frame,
			    uint32_t *ret_frame)
{
	int32_t line = tree->by_line ? frame->line : frame->function->first_line;
	uint32_t function = function_rows_find(&tree->functions, frame->function->id);
	int err;

	if (function == PROFILE_NONE) {
		if (profile_tree_is_full(tree))
			return -E2BIG;
		err = function_rows_add(&tree->functions, frame->function, &function);
		if (err)
			return err;
	}
	return profile_tree_get_frame(tree, function, line, ret_frame);
}

/* Whether node is frame below parent. PROFILE_NONE is no node. */
static bool node_is(const struct profile_tree *tree, uint32_t node, uint32_t parent, uint32_t frame)
{
	return node != PROFILE_NONE && tree->nodes[node].parent == parent &&
	       tree->nodes[node].frame == frame;
}

/* Give memory back when recent stacks are far shallower than earlier ones. */
static void path_fit(struct thread_path *path)
{
	uint32_t max_nodes = path->max_nodes / (SHALLOW_PART / 2);
	uint32_t *nodes;

	if (path->max_nodes <= SHALLOW_LEAST || path->nr_nodes > max_nodes / 2) {
		path->nr_shallow = 0;
		return;
	}
	if (++path->nr_shallow < SHALLOW_SAMPLES)
		return;
	path->nr_shallow = 0;
	nodes = reallocarray(path->nodes, max_nodes, sizeof(*nodes));
	if (!nodes)
		return;
	path->nodes = nodes;
	path->max_nodes = max_nodes;
}

/*
 * Many frames that changed are still the same row: with a row per function, the next line is. So
 * the previous node is tried before the tree is searched.
 */
int thread_path_follow(struct thread_path *path, struct profile_tree *tree,
		       const struct sample *sample)
{
	uint32_t nr_before = path->nr_nodes;
	uint32_t nr_kept = sample->nr_unchanged;
	uint32_t *nodes;
	uint32_t parent;
	int err;

	if (nr_kept > sample->nr_frames)
		nr_kept = sample->nr_frames;
	if (nr_kept > nr_before)
		nr_kept = nr_before;
	path->nr_nodes = nr_kept; /* after an error the next sample relies on no more */
	nodes = array_reserve(path->nodes, sample->nr_frames, &path->max_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	path->nodes = nodes;

	parent = nr_kept ? nodes[nr_kept - 1] : path->root;
	for (uint32_t i = nr_kept; i < sample->nr_frames; i++) {
		uint32_t frame;

		err = sample_frame_get(tree, &sample->frames[i], &frame);
		if (err)
			return err;
		if (i >= nr_before || !node_is(tree, nodes[i], parent, frame)) {
			err = profile_tree_get_node(tree, parent, frame, &nodes[i]);
			if (err)
				return err;
		}
		parent = nodes[i];
		path->nr_nodes = i + 1;
	}
	path_fit(path);
	return 0;
}

uint32_t thread_path_leaf(const struct thread_path *path)
{
	return path->nr_nodes ? path->nodes[path->nr_nodes - 1] : path->root;
}

void thread_path_cut(struct thread_path *path, uint32_t nr_unchanged)
{
	if (path->nr_nodes > nr_unchanged)
		path->nr_nodes = nr_unchanged;
}
