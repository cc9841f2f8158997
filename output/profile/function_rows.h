/* SPDX-License-Identifier: MIT */
/* The functions of a profile, with the rows of one sampler's ids and of those before it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/text/pair_map.h"
#include "output/text/string_table.h"
#include "sampler/sample.h"

#define PROFILE_NONE UINT32_MAX /* no parent, no line, no thread */

/* A function, by its id in the samples. */
struct profile_function {
	char *qualname;
	const char *path;   /* one copy for all functions that have it */
	int32_t first_line; /* of the def; 0 if not known */
	enum function_kind kind;
	bool is_plumbing; /* see plumbing.h */
};

/* From the sampler's dense ids to our indices; PROFILE_NONE where there is none yet. */
struct id_map {
	uint32_t *index; /* owned */
	uint32_t max;
};

/* All zero it is empty. */
struct function_rows {
	struct profile_function *rows; /* owned, with their strings */
	uint32_t nr, max;
	struct string_table
		paths; /* its strings are owned: 2^22 functions can have one of 64 KiB */
	struct id_map of_id;
	struct pair_map of_name; /* hashes of what it is → row; filled as needed */
	uint32_t nr_named;	 /* so many rows are in it */
	bool ids_changed;	 /* there are rows that another sampler's ids stood for */
};

void function_rows_done(struct function_rows *rows);

/*
 * Append a row like function, whose id is not looked at, with copies of its strings; no id
 * stands for it. 0 or -ENOMEM.
 */
int function_rows_append(struct function_rows *rows, const struct function *function,
			 uint32_t *ret_index);

/* The row that is like function, whose id is not looked at; PROFILE_NONE if there is none. */
uint32_t function_rows_search(struct function_rows *rows, const struct function *function);

/* The row of an id; PROFILE_NONE if there is none yet. */
uint32_t function_rows_find(const struct function_rows *rows, uint32_t id);

/*
 * The row of a function whose id has none yet: that of another sampler's function that is
 * like it, or a new one. 0 or -ENOMEM.
 */
int function_rows_get(struct function_rows *rows, const struct function *function,
		      uint32_t *ret_index);

/* From now on ids are another sampler's. */
void function_rows_change_ids(struct function_rows *rows);
