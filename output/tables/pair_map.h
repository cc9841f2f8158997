/* SPDX-License-Identifier: MIT */
/*
 * A hash table from a pair of numbers to an index, for tables whose rows are found by two
 * columns: (parent, frame) of a node, (function, line) of a frame. Open addressing with linear
 * probing, at most half full. Pairs are never removed.
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

/* Empty when all zero. */
struct pair_map {
	struct pair_slot *slots; /* owned; NULL while empty */
	size_t max_slots;	 /* a power of two, or 0 */
	size_t nr;
};

/* Free the slots and empty the map. Accepts NULL. */
void pair_map_done(struct pair_map *map);

/* Returns the value of a pair; PAIR_MAP_NONE if it was never added. */
uint32_t pair_map_find(const struct pair_map *map, uint32_t first, uint32_t second);

/* Add a pair that is not in the map. Returns 0, or -ENOMEM with the map unchanged. */
int pair_map_add(struct pair_map *map, uint32_t first, uint32_t second, uint32_t value);
