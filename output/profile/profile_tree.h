/* SPDX-License-Identifier: MIT */
/*
 * The tree of stacks: functions, frames (rows) and nodes, each found by what it is. A
 * profile counts by it, and a recording defines it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/function_rows.h"
#include "output/text/pair_map.h"
#include "sampler/sample.h"

/* A row of the profile: a function, or one line of it if rows are lines. */
struct profile_frame {
	uint32_t function; /* index into functions; PROFILE_NONE for a thread's root */
	int32_t line;	   /* executing line if rows are lines, else the function's first */
	uint32_t thread;   /* index into threads for a thread's root; PROFILE_NONE for the
			    one that threads without a row of their own share, and else */
	bool is_late;	   /* it is Python's innermost of samples with SAMPLE_IN_JIT, whose line
			    may be some statements late; of PROFILE_SELF */
};

/*
 * A node of the stack tree: a frame below its caller. Parents come before children.
 *
 * A sample that has no frames, or none but plumbing, has no node, except that with by_thread
 * it counts as the self of its thread's root.
 */
struct profile_node {
	uint32_t parent; /* PROFILE_NONE for outermost frames */
	uint32_t frame;
	uint64_t self_samples; /* samples whose innermost frame this is */
	uint64_t self_ns;      /* their weights, of the profile's mode */
};

/* Initialise with by_line, keep_plumbing and max_nodes, the rest zero. */
struct profile_tree {
	bool by_line;	    /* a row per line instead of a row per function */
	bool keep_plumbing; /* else its frames have no nodes, and count as their callers' */
	uint32_t max_nodes; /* beyond them nothing has a place; two are kept free */

	struct function_rows functions;

	struct profile_frame *frames; /* owned */
	uint32_t nr_frames, max_frames;
	struct pair_map frame_of_line; /* (function, line) → frame; no threads' roots */

	struct profile_node *nodes; /* owned */
	uint32_t nr_nodes, room_nodes;
	struct pair_map node_of_call; /* (parent, frame) → node */
};

/* Free what the tree holds. */
void profile_tree_done(struct profile_tree *tree);

/* Whether what is not in the tree yet has no place there. */
bool profile_tree_is_full(const struct profile_tree *tree);

/*
 * The index of a function by what it is (its id is not looked at), made if it is new. 0; -ENOMEM;
 * -E2BIG if none of its rows could have a node.
 */
int profile_tree_get_function(struct profile_tree *tree, const struct function *function,
			      uint32_t *ret_function);

/*
 * The row of a line of a function, by its index, made if it is new. line is taken as it
 * is, whatever by_line says. 0; -ENOMEM; -E2BIG if it could have no node.
 */
int profile_tree_get_frame(struct profile_tree *tree, uint32_t function, int32_t line,
			   uint32_t *ret_frame);

/*
 * The node of a frame below parent, made if it is new; for plumbing that is not kept, parent
 * itself, be it PROFILE_NONE. 0; -ENOMEM; -E2BIG if there is no place.
 */
int profile_tree_get_node(struct profile_tree *tree, uint32_t parent, uint32_t frame,
			  uint32_t *ret_node);

/* Whether a node stands for no frame: it is PROFILE_NONE, or the root of a thread. */
bool profile_tree_is_root(const struct profile_tree *tree, uint32_t node);

/*
 * Append an outermost node with a frame of its own that no look-up finds, full or not: the
 * root of a thread, or what stands for stacks without a place. 0 or -ENOMEM.
 */
int profile_tree_add_root(struct profile_tree *tree, const struct profile_frame *frame,
			  uint32_t *ret_node);

/* Where a thread's previous sample lies in the tree. All zero but root it is empty. */
struct profile_path {
	uint32_t root;	 /* node that it hangs below; PROFILE_NONE if there is none */
	uint32_t *nodes; /* owned; outermost first, the root not among them */
	uint32_t nr_nodes;
	uint32_t max_nodes;
	uint32_t nr_shallow; /* samples in a row that needed far less room than there is */
};

/*
 * Make path the nodes of the sample's frames; what nr_unchanged says is kept unseen. 0;
 * -ENOMEM; -E2BIG if the stack has no place: the next sample relies on nothing of it.
 */
int profile_path_follow(struct profile_path *path, struct profile_tree *tree,
			const struct sample *sample);

/* The node of the sample that was followed last: its root if it has no frames. */
uint32_t profile_path_leaf(const struct profile_path *path);

/* The thread had a sample that was not followed: no more than this of the path is right. */
void profile_path_cut(struct profile_path *path, uint32_t nr_unchanged);
