/* SPDX-License-Identifier: MIT */
/* Interns functions: equal kind, name, path and first line give the same object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/base/frame.h"

struct function_entry;

/* The name of the one function that stands for all that exceed max_bytes. */
#define FUNCTION_TABLE_OVERFLOW "[other functions]"

/*
 * The same for the names of asyncio tasks, which may take a quarter of max_bytes: a program may
 * give each task a name of its own, and its functions must stay known.
 */
#define FUNCTION_TABLE_OTHER_TASKS "[other tasks]"

/* Empty and unlimited if zero-initialised. */
struct function_table {
	struct function_entry **slots; /* open addressing; a power of two */
	size_t nr_slots;
	uint32_t nr_functions;
	size_t nr_bytes;      /* used by the functions */
	size_t nr_task_bytes; /* those of FUNCTION_TASK */
	size_t max_bytes;     /* limit; further functions become FUNCTION_TABLE_OVERFLOW; 0: none */
};

/*
 * The function with that kind, name, path and line, created if it is new. The strings are copied.
 * When max_bytes is used up, every new function is FUNCTION_TABLE_OVERFLOW, or that of the tasks,
 * which have no path and line 0. Valid until function_table_done(). Returns NULL if out of memory.
 */
const struct function *function_table_get(struct function_table *table, enum function_kind kind,
					  const char *qualname, const char *path,
					  int32_t first_line);

/* Whether function is the one that stands for all that exceed max_bytes. */
bool function_is_overflow(const struct function *function);

/* Free all functions and leave the table empty. Accepts NULL. */
void function_table_done(struct function_table *table);
