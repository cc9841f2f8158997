/* SPDX-License-Identifier: MIT */
/* Numbers distinct strings from 0, in the order first seen. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Empty when all zero. */
struct string_table {
	const char **strings; /* the array is owned, the strings are borrowed */
	uint32_t nr, max;
	uint32_t *slots; /* owned; number + 1 by hash, 0 if free; at most half full */
	size_t max_slots;
	uint64_t seed; /* of the hashes, so that nobody can choose colliding strings */
};

/* Free and empty the table. Accepts NULL. */
void string_table_done(struct string_table *table);

/*
 * Find the number of a string, or add it. The string is borrowed as long as the table. Returns 0
 * or -ENOMEM.
 */
int string_table_get(struct string_table *table, const char *string, uint32_t *ret_number);
