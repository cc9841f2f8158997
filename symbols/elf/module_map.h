/* SPDX-License-Identifier: MIT */
/*
 * The modules of a target by address: the run of mappings of each file, and each mapping of none,
 * as the kernel's own module, the vdso, is one. Who keeps something of each has an array of
 * as many, by the same indexes.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

#define MODULE_MAP_NONE UINT32_MAX /* the index of none */

struct module_range {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct mapping *mapping; /* the first one; borrowed */
};

/* All zero there are none. */
struct module_map {
	struct module_range *ranges; /* by rising address; owned */
	uint32_t nr_ranges, max_ranges;
	uint32_t last_index; /* that was found */
};

/*
 * Fill map with the modules of maps, whose array of mappings is borrowed as long as map is
 * there. 0 or -ENOMEM. module_map_done() frees what it holds; it accepts one that is zero.
 */
int module_map_init(struct module_map *map, const struct maps *maps);
void module_map_done(struct module_map *map);

/* The index of the module that addr is in, or MODULE_MAP_NONE. */
uint32_t module_map_find(struct module_map *map, remote_addr addr);
