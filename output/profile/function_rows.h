/* SPDX-License-Identifier: MIT */
/*
 * The functions of a profile, found by a sampler's function id or by name, path, line and kind.
 * Rows outlive the samplers, which share their ids (sampler/sample_ids.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/tables/pair_map.h"
#include "output/tables/string_table.h"
#include "sampler/sample.h"

#define PROFILE_NONE UINT32_MAX /* no parent, no line, no thread */

/* A function, one row. */
struct profile_function {
	char *qualname;
	const char *path;   /* shared by all functions of that path */
	int32_t first_line; /* line of the def; 0 if unknown */
	enum function_kind kind;
	bool is_plumbing; /* see plumbing.h */
};

/* Maps the sampler's dense ids to row indices. PROFILE_NONE: the id has no row yet. */
struct id_map {
	uint32_t *index; /* owned */
	uint32_t max;
};

/* Empty when all zero. */
struct function_rows {
	struct profile_function *rows; /* owned, with their strings */
	uint32_t nr, max;
	/* Owns its strings. Paths are shared because 2^22 functions can each have one of 64 KiB. */
	struct string_table paths;
	struct id_map of_id;
	struct pair_map of_name; /* hashes of the identity → row; filled on demand */
	uint32_t nr_named;	 /* rows entered in of_name so far */
};

void function_rows_done(struct function_rows *rows);

/*
 * Append a row for function with copies of its strings. Its id is ignored and mapped to nothing.
 * Returns 0 or -ENOMEM.
 */
int function_rows_append(struct function_rows *rows, const struct function *function,
			 uint32_t *ret_index);

/*
 * Find the row with the same name, path, line and kind; the id is ignored. PROFILE_NONE if there
 * is none.
 */
uint32_t function_rows_search(struct function_rows *rows, const struct function *function);

/* Returns the row of an id, or PROFILE_NONE if it has none yet. */
uint32_t function_rows_find(const struct function_rows *rows, uint32_t id);

/* Append a row for a function whose id has none yet, and map the id to it. Returns 0 or -ENOMEM. */
int function_rows_add(struct function_rows *rows, const struct function *function,
		      uint32_t *ret_index);
