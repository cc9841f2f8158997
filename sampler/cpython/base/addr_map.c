/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/addr_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "procmem/hash.h"

enum { FIRST_SLOT_BITS = 8 };

/* An odd number that other processes cannot know: from the 16 random bytes of getauxval(3). */
static uint64_t secret_multiplier(void)
{
	/* An address, as the kernel passes it. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t multiplier = HASH_GOLDEN_RATIO;

	if (random)
		memcpy(&multiplier, random, sizeof(multiplier));
	return multiplier | 1;
}

static void slots_insert(struct addr_map *map, remote_addr addr, void *value)
{
	size_t mask = map->nr_slots - 1;
	size_t i = addr_map_first(map, addr);

	while (map->slots[i].value)
		i = (i + 1) & mask;
	map->slots[i] = (struct addr_map_slot){.addr = addr, .value = value};
	map->nr_used++;
}

static int addr_map_grow(struct addr_map *map)
{
	struct addr_map larger = {
		.nr_slots = map->nr_slots ? map->nr_slots * 2 : (size_t)1 << FIRST_SLOT_BITS,
		.multiplier = map->nr_slots ? map->multiplier : secret_multiplier(),
		.shift = map->nr_slots ? map->shift - 1 : 64 - FIRST_SLOT_BITS,
	};

	larger.slots = calloc(larger.nr_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->nr_slots; i++)
		if (map->slots[i].value)
			slots_insert(&larger, map->slots[i].addr, map->slots[i].value);
	free(map->slots);
	*map = larger;
	return 0;
}

int addr_map_put(struct addr_map *map, remote_addr addr, void *value)
{
	assert(value);
	if (addr_map_get(map, addr))
		return 0;
	if (map->nr_used + 1 > map->nr_slots / 4 * 3) {
		int err = addr_map_grow(map);

		if (err)
			return err;
	}
	slots_insert(map, addr, value);
	return 0;
}

void addr_map_done(struct addr_map *map)
{
	if (!map)
		return;
	free(map->slots);
	*map = (struct addr_map){0};
}
