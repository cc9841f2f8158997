/* SPDX-License-Identifier: MIT */
#include "sampler/rseq.h"

#include <linux/rseq.h>
#include <stddef.h>
#include <string.h>

#include "symbols/image.h"
#include "symbols/symtab.h"

/* The kernel refuses to register a smaller area. */
enum { LEAST_RSEQ_BYTES = 20 };

/* No thread's TLS is larger. */
#define MAX_OFFSET (1 << 30)

/* Whether a mapping may be of the program that defines the two variables. */
static bool may_be_loader(const struct mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');

	return mapping->inode && name && strncmp(name, "/ld", strlen("/ld")) == 0;
}

/* Read the two variables of an image, if it has them. */
static bool read_place(struct remote_memory *memory, const struct image *image, uint64_t load_bias,
		       struct rseq_place *ret_place)
{
	uint64_t offset_vaddr, size_vaddr, nr_bytes, word;
	uint32_t size_bytes;

	if (symtab_find(image, "__rseq_offset", &offset_vaddr, &nr_bytes) ||
	    symtab_find(image, "__rseq_size", &size_vaddr, &nr_bytes) ||
	    remote_memory_read(memory, size_vaddr + load_bias, &size_bytes, sizeof(size_bytes)) ||
	    remote_memory_read_u64(memory, offset_vaddr + load_bias, &word) ||
	    size_bytes < LEAST_RSEQ_BYTES || (int64_t)word > MAX_OFFSET ||
	    (int64_t)word < -MAX_OFFSET)
		return false;
	*ret_place = (struct rseq_place){
		.is_known = true,
		.cpu_id_offset = (int64_t)word + (int64_t)offsetof(struct rseq, cpu_id),
	};
	return true;
}

struct rseq_place rseq_place_find(struct remote_memory *memory, const struct maps *maps,
				  struct image_source *images)
{
	struct rseq_place place = {.is_known = false};

#if !defined(__x86_64__)
	/* A pthread_t is the thread pointer on x86-64 alone; elsewhere it lies before it. */
	return place;
#endif
	for (size_t i = 0, end; !place.is_known && i < maps->nr_mappings; i = end) {
		const struct mapping *mapping = &maps->mappings[i];
		struct image *image;
		uint64_t load_bias;

		end = maps_module_end(maps, i);
		if (!may_be_loader(mapping) || image_source_open(images, mapping, &image))
			continue;
		if (!image_load_bias(image, mapping, &load_bias))
			(void)read_place(memory, image, load_bias, &place);
		image_close(image);
	}
	return place;
}
