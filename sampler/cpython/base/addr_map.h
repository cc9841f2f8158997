/* SPDX-License-Identifier: MIT */
/*
 * A hash table from addresses in the target to our own pointers. Keys are never removed. The target
 * chooses the addresses, so the hash is keyed with a secret number.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

struct addr_map_slot {
	remote_addr addr;
	void *value; /* NULL: the slot is free */
};

/* Empty if zero-initialised. */
struct addr_map {
	struct addr_map_slot *slots; /* a power of two, at most 3/4 used */
	size_t nr_slots;
	size_t nr_used;
	uint64_t multiplier; /* odd and secret */
	unsigned int shift;  /* shifts the product down to an index into slots */
};

/*
 * The slot where the search for addr begins. The upper bits of a product depend on all lower bits.
 */
static inline size_t addr_map_first(const struct addr_map *map, remote_addr addr)
{
	return (size_t)(addr * map->multiplier >> map->shift);
}

/* The value stored for addr, or NULL. */
static inline void *addr_map_get(const struct addr_map *map, remote_addr addr)
{
	size_t mask = map->nr_slots - 1;
	size_t i;

	if (!map->nr_slots)
		return NULL;
	i = addr_map_first(map, addr);
	while (map->slots[i].value && map->slots[i].addr != addr)
		i = (i + 1) & mask;
	return map->slots[i].value;
}

/*
 * Store value (not NULL) for addr. An addr that is already in the map keeps its value. Returns 0 or
 * -ENOMEM.
 */
int addr_map_put(struct addr_map *map, remote_addr addr, void *value);

/* Free the table and leave it empty; the values belong to the caller. Accepts NULL. */
void addr_map_done(struct addr_map *map);
