/* SPDX-License-Identifier: MIT */
/*
 * Which processes of a tree have which ends of pipes. Source: proc_pid_fd(5): the permissions of a
 * descriptor's link are those of the descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/dump/tree.h"

/* An end of a pipe, or both. */
struct pipe_end {
	uint64_t inode; /* of the pipe */
	size_t process; /* index into the tree's processes */
	bool reads, writes;
};

/* Empty when all zero. */
struct pipe_ends {
	struct pipe_end *ends; /* owned; by inode, then by process */
	uint32_t nr_ends, max_ends;
};

/*
 * The inode in a descriptor's link, such as "pipe:[4711]", of this kind ("pipe:["); 0 for any other
 * link.
 */
uint64_t link_inode(const char *link, const char *kind);

/*
 * List the pipes of all processes of a tree, with up to 4096 descriptors of each. Returns 0 or
 * -ENOMEM; pipe_ends_done() must follow in any case.
 */
int pipe_ends_read(struct pipe_ends *ends, const struct tree *tree);
void pipe_ends_done(struct pipe_ends *ends);

/* Returns the first end of a pipe, and how many follow; NULL if it has none. */
const struct pipe_end *pipe_ends_find(const struct pipe_ends *ends, uint64_t inode, size_t *ret_nr);
