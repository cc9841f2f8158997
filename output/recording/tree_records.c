/* SPDX-License-Identifier: MIT */
#include "output/recording/tree_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/hash.h"

/* Nodes of one record: a few pages, however much the tree grew. */
enum { MAX_NODES = 4096 };

void tree_records_done(struct tree_records *records)
{
	tree_records_reset(records);
	free(records->path_functions);
	for (int i = 0; i < NR_NODES_COLUMNS; i++)
		byte_buffer_done(&records->columns[i]);
	*records = (struct tree_records){0};
}

void tree_records_reset(struct tree_records *records)
{
	pair_map_done(&records->path_of_hash);
	records->nr_functions = 0;
	records->nr_nodes = 0;
	records->nr_paths = 0;
	records->strings_bytes = 0;
}

/*
 * Number a path that comes with a function. If two paths share a hash, the second is never found.
 */
static int paths_add(struct tree_records *records, uint64_t hash, uint32_t function, bool is_found)
{
	uint32_t *functions;
	int err = 0;

	functions = array_reserve(records->path_functions, records->nr_paths + 1,
				  &records->max_paths, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	records->path_functions = functions;
	if (!is_found)
		err = pair_map_add(&records->path_of_hash, (uint32_t)(hash >> 32), (uint32_t)hash,
				   records->nr_paths);
	if (err)
		return err;
	functions[records->nr_paths++] = function;
	return 0;
}

/* Append a function's path, or the number of an equal one. */
static int put_path(struct tree_records *records, const struct profile_function *functions,
		    uint32_t function, struct byte_buffer *payload)
{
	const char *path = functions[function].path;
	const uint64_t hash = hash_add_string(HASH_BEGIN, path);
	const uint32_t index =
		pair_map_find(&records->path_of_hash, (uint32_t)(hash >> 32), (uint32_t)hash);

	if (index != PAIR_MAP_NONE &&
	    strcmp(functions[records->path_functions[index]].path, path) == 0) {
		byte_buffer_uint(payload, (uint64_t)index + 1);
		return 0;
	}
	byte_buffer_uint(payload, 0);
	byte_buffer_string(payload, path, RECORDING_MAX_STRING_BYTES);
	records->strings_bytes += strlen(path) + 1;
	return paths_add(records, hash, function, index != PAIR_MAP_NONE);
}

static int write_function(struct tree_records *records, const struct profile_function *functions,
			  uint32_t function, struct record_stream *stream)
{
	const struct profile_function *row = &functions[function];
	struct byte_buffer *payload = record_stream_begin(stream);
	int err;

	byte_buffer_uint(payload, row->kind);
	byte_buffer_string(payload, row->qualname, RECORDING_MAX_STRING_BYTES);
	records->strings_bytes += strlen(row->qualname) + 1;
	err = put_path(records, functions, function, payload);
	byte_buffer_int(payload, row->first_line);
	return err ? err : record_stream_end(stream, RECORD_FUNCTION, NULL, 0);
}

static void put_node(struct tree_records *records, const struct profile_tree *tree, uint32_t node)
{
	const uint32_t parent = tree->nodes[node].parent;
	const struct profile_frame *frame = &tree->frames[tree->nodes[node].frame];
	const int64_t first_line = tree->functions.rows[frame->function].first_line;

	byte_buffer_uint(&records->columns[NODES_PARENTS],
			 parent == PROFILE_NONE ? 0 : node - parent);
	byte_buffer_uint(&records->columns[NODES_FUNCTIONS], frame->function);
	byte_buffer_int(&records->columns[NODES_LINES], frame->line - first_line);
}

/* Write the next nodes, at most one record. */
static int write_nodes(struct tree_records *records, const struct profile_tree *tree,
		       struct record_stream *stream)
{
	uint32_t nr = tree->nr_nodes - records->nr_nodes;

	if (nr > MAX_NODES)
		nr = MAX_NODES;
	byte_buffer_uint(record_stream_begin(stream), nr);
	for (uint32_t i = 0; i < nr; i++)
		put_node(records, tree, records->nr_nodes++);
	return record_stream_end(stream, RECORD_NODES, records->columns, NR_NODES_COLUMNS);
}

int tree_records_write(struct tree_records *records, const struct profile_tree *tree,
		       struct record_stream *stream)
{
	int err = 0;

	while (!err && records->nr_functions < tree->functions.nr)
		err = write_function(records, tree->functions.rows, records->nr_functions++,
				     stream);
	while (!err && records->nr_nodes < tree->nr_nodes)
		err = write_nodes(records, tree, stream);
	return err;
}
