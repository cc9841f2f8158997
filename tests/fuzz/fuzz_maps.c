/* SPDX-License-Identifier: MIT */
/* Any text for maps_parse(). What it accepts must keep the promises of struct maps. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps maps;

	if (maps_parse((const char *)data, size, &maps))
		return 0;
	for (size_t i = 0; i < maps.nr_mappings; i++) {
		const struct mapping *mapping = &maps.mappings[i];
		size_t end = maps_module_end(&maps, i);

		require(mapping->start < mapping->end);
		require(i == 0 || maps.mappings[i - 1].end <= mapping->start);
		require(strlen(mapping->path) <= size);
		require(end > i && end <= maps.nr_mappings);
	}
	maps_done(&maps);
	return 0;
}
