/* SPDX-License-Identifier: MIT */
#include "sampler/gil.h"

#include "symbols/elf/image.h"
#include "symbols/elf/symtab.h"

struct gil gil_decode(const struct gil_place *place, const uint8_t *words)
{
	const uint8_t *const holder = words + place->holder_offset;
	struct gil gil = {.last_holder_addr = field_u64(holder, 0)};

	if (place->holder_offset && field_i32(words, 0) != GIL_ON_FOR_GOOD)
		return (struct gil){.is_known = false};
	gil.is_known = gil.last_holder_addr != 0;
	gil.is_held = gil.is_known;
	if (place->locked_offset) {
		gil.is_held = field_i32(holder, place->locked_offset) == 1;
		gil.is_counted = true;
		gil.nr_switches = field_u64(holder, GIL_SWITCHES_OFFSET);
	}
	return gil;
}

remote_addr gil_find_current(const struct maps *maps, struct image_source *images,
			     remote_addr interp_head_addr)
{
	remote_addr addr = 0;

	for (size_t i = 0, end; i < maps->nr_mappings; i = end) {
		const struct mapping *mapping = &maps->mappings[i];
		uint64_t load_bias, vaddr, size_bytes;
		struct image *image;

		end = maps_module_end(maps, i);
		if (interp_head_addr < mapping->start ||
		    interp_head_addr >= maps->mappings[end - 1].end)
			continue;
		if (image_source_open(images, mapping, &image))
			return 0;
		if (!image_load_bias(image, mapping, &load_bias) &&
		    !symtab_find(image, "_PyThreadState_Current", &vaddr, &size_bytes))
			addr = vaddr + load_bias;
		image_close(image);
		return addr;
	}
	return 0;
}
