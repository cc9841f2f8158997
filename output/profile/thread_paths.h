/* SPDX-License-Identifier: MIT */
/*
 * Where the threads of a sampler are in a tree of stacks: each thread's path, by its slot. With
 * the path of the previous sample, a sample costs what changed and not what is deep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile_tree.h"
#include "sampler/sample.h"

/* The nodes of a thread's previous sample. */
struct thread_path {
	bool is_used;	 /* the slot has a thread; otherwise only the room for nodes is kept */
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

/* Return the path of a thread, borrowed until the next call; NULL if another has its slot. */
struct thread_path *thread_paths_find(const struct thread_paths *paths,
				      const struct sample_thread *thread);

/*
 * Begin an empty path for a new thread, without row and root. It is found once the caller sets
 * is_used. Returns 0 or -ENOMEM.
 */
int thread_paths_begin(struct thread_paths *paths, const struct sample_thread *thread,
		       struct thread_path **ret_path);

/* Forget all threads: later ids and slots come from another sampler. */
void thread_paths_forget(struct thread_paths *paths);

/*
 * Set path to the nodes of the sample's frames. Those that nr_unchanged covers are kept
 * unchecked. Returns 0; -ENOMEM; -E2BIG if the stack does not fit. After an error the path holds
 * only the nodes found, and the next sample relies on no more.
 */
int thread_path_follow(struct thread_path *path, struct profile_tree *tree,
		       const struct sample *sample);

/* Return the node of the last sample followed; the root if it has no frames. */
uint32_t thread_path_leaf(const struct thread_path *path);

/* Keep at most nr_unchanged nodes: the thread had a sample that was not followed. */
void thread_path_cut(struct thread_path *path, uint32_t nr_unchanged);
