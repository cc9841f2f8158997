/* SPDX-License-Identifier: MIT */
#include "sampler/current_thread.h"

#include "symbols/image.h"
#include "symbols/symtab.h"

remote_addr current_thread_find(const struct maps *maps, struct image_source *images,
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
