/* SPDX-License-Identifier: MIT */
/* A hash table from addresses in the target to pointers of ours; keys are never removed. */
#pragma once

#include <stddef.h>

#include "procmem/memory.h"

struct addr_map_slot {
	remote_addr addr;
	void *value; /* NULL: the slot is free */
};

/* Zero-initialised it is empty. */
struct addr_map {
	struct addr_map_slot *slots; /* a power of two of them, at most 3/4 used */
	size_t nr_slots;
	size_t nr_used;
};

/* The value stored for addr, or NULL. */
static inline void *addr_map_get(const struct addr_map *map, remote_addr addr)
{
	size_t mask = map->nr_slots - 1;
	size_t i;

	if (!map->nr_slots)
		return NULL;
	/* Fibonacci hashing: objects are aligned, the low bits say little. */
	i = (size_t)(addr * 0x9e3779b97f4a7c15u >> 32) & mask;
	while (map->slots[i].value && map->slots[i].addr != addr)
		i = (i + 1) & mask;
	return map->slots[i].value;
}

/* Store value (not NULL) for an addr that has none yet. 0 or -ENOMEM. */
int addr_map_put(struct addr_map *map, remote_addr addr, void *value);

/* Free the table; the values are the caller's. */
void addr_map_done(struct addr_map *map);
