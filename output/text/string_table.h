/* SPDX-License-Identifier: MIT */
/* Strings by number: each distinct one once, numbered from 0 in the order first seen. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All zero it is empty. */
struct string_table {
	const char **strings; /* the array is owned, the strings are borrowed */
	uint32_t nr, max;
	uint32_t *slots; /* owned; number + 1 by hash, 0: free; at most half of them are taken */
	size_t max_slots;
	uint64_t seed; /* of the hashes: nobody can choose strings that all have one slot */
};

/* Free what the table holds; it is empty then. Accepts NULL. */
void string_table_done(struct string_table *table);

/* The number of a string, which is borrowed for as long as the table. 0 or -ENOMEM. */
int string_table_get(struct string_table *table, const char *string, uint32_t *ret_number);
