/* SPDX-License-Identifier: MIT */
#include "output/tables/pair_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "procmem/hash.h"

#define MIN_SLOTS 64

void pair_map_done(struct pair_map *map)
{
	if (!map)
		return;
	free(map->slots);
	*map = (struct pair_map){0};
}

/*
 * Fibonacci hashing (Knuth, TAOCP 3, 6.4). Indices are small and dense, and the product spreads
 * them. Its low bits depend only on the low bits of second, so the high half is folded in.
 */
static size_t pair_hash(uint32_t first, uint32_t second)
{
	uint64_t product = ((uint64_t)first << 32 | second) * HASH_GOLDEN_RATIO;

	return (size_t)(product ^ product >> 32);
}

/* Returns the slot of the pair, or the free slot where it belongs. */
static struct pair_slot *slot_find(const struct pair_map *map, uint32_t first, uint32_t second)
{
	size_t mask = map->max_slots - 1;

	for (size_t i = pair_hash(first, second) & mask;; i = (i + 1) & mask) {
		struct pair_slot *slot = &map->slots[i];

		if (slot->value == PAIR_MAP_NONE ||
		    (slot->first == first && slot->second == second))
			return slot;
	}
}

uint32_t pair_map_find(const struct pair_map *map, uint32_t first, uint32_t second)
{
	return map->slots ? slot_find(map, first, second)->value : PAIR_MAP_NONE;
}

static int map_grow(struct pair_map *map)
{
	struct pair_map grown = {.nr = map->nr};

	grown.max_slots = map->max_slots ? map->max_slots * 2 : MIN_SLOTS;
	grown.slots = reallocarray(NULL, grown.max_slots, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < grown.max_slots; i++)
		grown.slots[i].value = PAIR_MAP_NONE;
	for (size_t i = 0; i < map->max_slots; i++) {
		const struct pair_slot *slot = &map->slots[i];

		if (slot->value != PAIR_MAP_NONE)
			*slot_find(&grown, slot->first, slot->second) = *slot;
	}
	free(map->slots);
	*map = grown;
	return 0;
}

int pair_map_add(struct pair_map *map, uint32_t first, uint32_t second, uint32_t value)
{
	int err;

	assert(value != PAIR_MAP_NONE);
	if (map->nr >= map->max_slots / 2) {
		err = map_grow(map);
		if (err)
			return err;
	}
	*slot_find(map, first, second) = (struct pair_slot){first, second, value};
	map->nr++;
	return 0;
}
