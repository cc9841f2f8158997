/* SPDX-License-Identifier: MIT */
/* Writes a growing tree of stacks into a recording: records FUNCTION and NODES. */
#pragma once

#include <stdint.h>

#include "output/profile/profile_tree.h"
#include "output/recording/record_stream.h"
#include "output/tables/pair_map.h"

/* How much of a tree has been written. Empty when all zero. */
struct tree_records {
	uint32_t nr_functions, nr_nodes;
	struct pair_map path_of_hash; /* → path number - 1 */
	uint32_t *path_functions;     /* owned; the function each path was written with */
	uint32_t nr_paths, max_paths;
	uint64_t strings_bytes;
	struct byte_buffer columns[NR_NODES_COLUMNS];
};

void tree_records_done(struct tree_records *records);

/* Write what has been added to the tree. Returns 0; -ENOMEM; the error of the write. */
int tree_records_write(struct tree_records *records, const struct profile_tree *tree,
		       struct record_stream *stream);

/* Start over with an empty tree. */
void tree_records_reset(struct tree_records *records);
