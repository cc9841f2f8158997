/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "procmem/array.h"

/*
 * Append a range. A run that maps_module_end() finds ends with a mapping of the file, and no
 * other mapping overlaps it.
 */
static int add_range(struct module_map *map, const struct mapping *first,
		     const struct mapping *last)
{
	struct module_range *ranges =
		array_reserve(map->ranges, map->nr_ranges + 1, &map->max_ranges, sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	map->ranges = ranges;
	ranges[map->nr_ranges++] =
		(struct module_range){.start = first->start, .end = last->end, .mapping = first};
	return 0;
}

int module_map_init(struct module_map *map, const struct maps *maps)
{
	const struct mapping *mappings = maps->mappings;
	int err = 0;

	*map = (struct module_map){0};
	for (size_t i = 0, end; !err && i < maps->nr_mappings; i = end) {
		end = maps_module_end(maps, i);
		err = add_range(map, &mappings[i], &mappings[end - 1]);
	}
	if (err)
		module_map_done(map);
	return err;
}

void module_map_done(struct module_map *map)
{
	free(map->ranges);
	*map = (struct module_map){0};
}

static bool is_inside(const struct module_range *range, remote_addr addr)
{
	return addr >= range->start && addr < range->end;
}

uint32_t module_map_find(struct module_map *map, remote_addr addr)
{
	const struct module_range *ranges = map->ranges;
	uint32_t first = 0;
	uint32_t nr = map->nr_ranges;

	if (nr && is_inside(&ranges[map->last_index], addr))
		return map->last_index;
	/* The module sought, if there is one, is in [first, first + nr). */
	while (nr > 1) {
		const uint32_t half = nr / 2;

		first = ranges[first + half].start <= addr ? first + half : first;
		nr -= half;
	}
	if (!nr || !is_inside(&ranges[first], addr))
		return MODULE_MAP_NONE;
	map->last_index = first;
	return first;
}

const struct mapping *module_map_mapping(const struct module_map *map, uint32_t index,
					 remote_addr addr)
{
	const struct module_range *range = &map->ranges[index];
	const struct mapping *mapping = range->mapping;

	while (mapping->end <= addr) {
		if (mapping->end >= range->end)
			return NULL;
		mapping++;
	}
	return mapping->start <= addr ? mapping : NULL;
}
