/* SPDX-License-Identifier: MIT */
/* Every function that was seen, once: equal name, path and first line are one object. */
#pragma once

#include <stddef.h>

#include "sampler/sample.h"

struct function_entry;

/* Zero-initialised it is empty. */
struct function_table {
	struct function_entry **slots; /* open addressing; a power of two */
	size_t nr_slots;
	uint32_t nr_functions;
	size_t nr_bytes; /* that the functions take */
};

/*
 * The function of that name, made if it is new; the strings are copied. Valid
 * until function_table_done(). NULL if out of memory.
 */
const struct function *function_table_get(struct function_table *table, const char *qualname,
					  const char *path, int32_t first_line);

/* Free the table, which is empty then, and all its functions. Accepts NULL. */
void function_table_done(struct function_table *table);
