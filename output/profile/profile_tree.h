/* SPDX-License-Identifier: MIT */
/*
 * The tree of stacks: functions, frames (rows) and nodes, each found by its contents. A profile
 * counts with it, and a recording defines it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/function_rows.h"
#include "output/tables/pair_map.h"
#include "sampler/sample.h"

/* What a row without a function is the root of. */
enum root_kind { ROOT_NONE, ROOT_THREAD, ROOT_PROCESS };

/* A row of the profile: a function, or one of its lines if rows are lines. */
struct profile_frame {
	uint32_t function; /* index into functions; PROFILE_NONE for a root */
	int32_t line;	   /* the executing line if rows are lines, else the function's first */
	enum root_kind root;
	/* Index into threads or processes for a root; PROFILE_NONE: it is shared by others. */
	uint32_t owner;
	/*
	 * Innermost Python frame of a sample with SAMPLE_IN_JIT, whose line may be a few
	 * statements late. Samples of PROFILE_SHOWN only.
	 */
	bool line_is_uncertain;
};

/*
 * A node of the stack tree: a frame below its caller. Parents come before children. A sample
 * without frames, or with nothing but plumbing, has no node; with by_thread or by_process it
 * counts as self of its root.
 */
struct profile_node {
	uint32_t parent; /* PROFILE_NONE for outermost frames */
	uint32_t frame;
	uint64_t self_samples; /* samples whose innermost frame this is */
	uint64_t self_ns;      /* their weight in the profile's mode */
};

/* Initialise with by_line, keep_plumbing and max_nodes, the rest zero. */
struct profile_tree {
	bool by_line;	    /* a row per line instead of a row per function */
	bool keep_plumbing; /* else plumbing has no nodes and counts as its callers */
	uint32_t max_nodes; /* limit; the last three are reserved for roots */

	struct function_rows functions;

	struct profile_frame *frames; /* owned */
	uint32_t nr_frames, max_frames;
	struct pair_map frame_of_line; /* (function, line) → frame; not for threads' roots */

	struct profile_node *nodes; /* owned */
	uint32_t nr_nodes, nodes_capacity;
	struct pair_map node_of_call; /* (parent, frame) → node */
};

/* Free the tree's tables. */
void profile_tree_done(struct profile_tree *tree);

/* Whether the tree has no room for new nodes. */
bool profile_tree_is_full(const struct profile_tree *tree);

/*
 * Find a function by name, path, line and kind (its id is ignored), or add it. Returns 0;
 * -ENOMEM; -E2BIG if the tree has no room for a node of it.
 */
int profile_tree_get_function(struct profile_tree *tree, const struct function *function,
			      uint32_t *ret_function);

/*
 * Find the row of a function's line, by the function's index, or add it. line is used as it is,
 * whatever by_line is. Returns 0; -ENOMEM; -E2BIG if the tree has no room for a node of it.
 */
int profile_tree_get_frame(struct profile_tree *tree, uint32_t function, int32_t line,
			   uint32_t *ret_frame);

/*
 * Find the node of a frame below parent, or add it. For plumbing that is not kept this is parent
 * itself, even PROFILE_NONE. Returns 0; -ENOMEM; -E2BIG if the tree is full.
 */
int profile_tree_get_node(struct profile_tree *tree, uint32_t parent, uint32_t frame,
			  uint32_t *ret_node);

/* Whether a node stands for no frame: PROFILE_NONE, or a root. */
bool profile_tree_is_root(const struct profile_tree *tree, uint32_t node);

/*
 * Append a node with a new frame that no look-up finds, even if the tree is full: a root, which is
 * outermost or below another, or PROFILE_OTHER_STACKS. Returns 0 or -ENOMEM.
 */
int profile_tree_add_root(struct profile_tree *tree, uint32_t parent,
			  const struct profile_frame *frame, uint32_t *ret_node);

/* Paths: where the threads of samplers are in the tree. A sample costs what changed. */

/* The nodes of a thread's previous sample. */
struct thread_path {
	bool is_used;	 /* the slot has a thread; otherwise only the room for nodes is kept */
	bool is_placed;	 /* row and root are set */
	bool has_waited; /* it had samples that were hidden because it waited */
	uint32_t id;	 /* the thread's id */
	uint32_t row;	 /* the thread's, in a table of the caller; PROFILE_NONE if it has none */
	uint32_t root;	 /* the node above the stack; PROFILE_NONE if there is none */
	uint32_t *nodes; /* owned; outermost first, without the root */
	uint32_t nr_nodes, max_nodes;
	uint32_t nr_shallow; /* consecutive samples that needed far less room */
};

/* Empty when all zero. */
struct thread_paths {
	struct thread_path *paths; /* owned; by slot */
	uint32_t nr;
};

void thread_paths_done(struct thread_paths *paths);

/* Returns the path of a thread, borrowed until the next call; NULL if another has its slot. */
struct thread_path *thread_paths_find(const struct thread_paths *paths,
				      const struct sample_thread *thread);

/*
 * Begin an empty path for a new thread, without row and root. It is found once the caller sets
 * is_used. Returns 0 or -ENOMEM.
 */
int thread_paths_begin(struct thread_paths *paths, const struct sample_thread *thread,
		       struct thread_path **ret_path);

/*
 * Set path to the nodes of the sample's frames. Those that nr_unchanged covers are kept
 * unchecked. Returns 0; -ENOMEM; -E2BIG if the stack does not fit. After an error the path holds
 * only the nodes found, and the next sample relies on no more.
 */
int thread_path_follow(struct thread_path *path, struct profile_tree *tree,
		       const struct sample *sample);

/* Returns the node of the last sample followed; the root if it has no frames. */
uint32_t thread_path_leaf(const struct thread_path *path);

/* Keep at most nr_unchanged nodes: the thread had a sample that was not followed. */
void thread_path_cut(struct thread_path *path, uint32_t nr_unchanged);
