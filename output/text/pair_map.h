/* SPDX-License-Identifier: MIT */
/*
 * A hash table from a pair of numbers to an index, for tables whose rows are
 * found by two of their columns: (parent, frame) of a node, (function, line) of
 * a frame. Open addressing with linear probing, at most half full; nothing is
 * ever removed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAIR_MAP_NONE UINT32_MAX /* no such pair; never a value */

struct pair_slot {
	uint32_t first;
	uint32_t second;
	uint32_t value; /* PAIR_MAP_NONE if the slot is free */
};

/* All zero is an empty map. */
struct pair_map {
	struct pair_slot *slots; /* owned; NULL while empty */
	size_t max_slots;	 /* a power of two, or 0 */
	size_t nr;
};

/* Free what the map holds; it is empty then. Accepts NULL. */
void pair_map_done(struct pair_map *map);

/* The value of a pair; PAIR_MAP_NONE if it was never added. */
uint32_t pair_map_find(const struct pair_map *map, uint32_t first, uint32_t second);

/* Add a pair that is not there yet. 0; -ENOMEM, and the map is as before. */
int pair_map_add(struct pair_map *map, uint32_t first, uint32_t second, uint32_t value);
