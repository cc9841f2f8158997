/* SPDX-License-Identifier: MIT */
/*
 * The modules of a target by address. A module is the run of mappings of one file, or a single
 * mapping without a file, such as the vDSO. Callers keep per-module data in arrays with the same
 * indexes.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

#define MODULE_MAP_NONE UINT32_MAX /* no module */

struct module_range {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct mapping *mapping; /* its first mapping; borrowed */
};

/* All zero: no modules. */
struct module_map {
	struct module_range *ranges; /* by rising address; owned */
	uint32_t nr_ranges, max_ranges;
	uint32_t last_index; /* the last one found */
};

/*
 * Fill map with the modules of maps, whose array of mappings is borrowed for the lifetime of map.
 * Returns 0 or -ENOMEM. module_map_done() frees what map holds; it accepts an all-zero map.
 */
int module_map_init(struct module_map *map, const struct maps *maps);
void module_map_done(struct module_map *map);

/* The index of the module that contains addr, or MODULE_MAP_NONE. */
uint32_t module_map_find(struct module_map *map, remote_addr addr);

/* The mapping that contains addr, of the module of that index; NULL if it is between two. */
const struct mapping *module_map_mapping(const struct module_map *map, uint32_t index,
					 remote_addr addr);
