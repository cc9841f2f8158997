/* SPDX-License-Identifier: MIT */
/* Finds the mapping of an address in the test's own process. */
#pragma once

#include <stddef.h>

#include "procmem/maps.h"

/* The mapping that holds addr, or NULL; borrowed from maps. */
static inline const struct mapping *mapping_at(const struct maps *maps, remote_addr addr)
{
	for (size_t i = 0; i < maps->nr_mappings; i++)
		if (addr >= maps->mappings[i].start && addr < maps->mappings[i].end)
			return &maps->mappings[i];
	return NULL;
}
