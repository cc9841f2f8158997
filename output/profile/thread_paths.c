/* SPDX-License-Identifier: MIT */
#include "output/profile/thread_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/*
 * A path gives memory back after SHALLOW_SAMPLES samples that each needed less than one
 * SHALLOW_PART of its room, unless it has at most SHALLOW_LEAST nodes.
 */
enum { SHALLOW_SAMPLES = 4096, SHALLOW_PART = 8, SHALLOW_LEAST = 128 };

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
	path->is_used = false;
	path->id = thread->id;
	path->row = PROFILE_NONE;
	path->root = PROFILE_NONE;
	path->nr_nodes = 0;
	*ret_path = path;
	return 0;
}

void thread_paths_forget(struct thread_paths *paths)
{
	for (uint32_t i = 0; i < paths->nr; i++)
		paths->paths[i].is_used = false;
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
		err = function_rows_get(&tree->functions, frame->function, &function);
		if (err)
			return err;
	}
	return profile_tree_get_frame(tree, function, line, ret_frame);
}

/* Return whether node is frame below parent. PROFILE_NONE is no node. */
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
