/* SPDX-License-Identifier: MIT */
/* Every function that was seen, once: equal kind, name, path and first line are one object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/base/frame.h"

struct function_entry;

/* What the functions are called for which there is no room. */
#define FUNCTION_TABLE_OTHER "[other functions]"

/* Zero-initialised it is empty, and without a bound. */
struct function_table {
	struct function_entry **slots; /* open addressing; a power of two */
	size_t nr_slots;
	uint32_t nr_functions;
	size_t nr_bytes;  /* that the functions take */
	size_t max_bytes; /* new ones beyond are FUNCTION_TABLE_OTHER; 0: no bound */
};

/*
 * The function of that name, made if it is new; the strings are copied. Beyond max_bytes
 * new ones are all the same one, FUNCTION_TABLE_OTHER without a path or line. Valid until
 * function_table_done(). NULL if out of memory.
 */
const struct function *function_table_get(struct function_table *table, enum function_kind kind,
					  const char *qualname, const char *path,
					  int32_t first_line);

/* Whether a function is the one that stands for all for which there was no room. */
bool function_is_other(const struct function *function);

/* Free the table, which is empty then, and all its functions. Accepts NULL. */
void function_table_done(struct function_table *table);
