/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_memory.h"

/*
 * Read from the file mapped at addr, at most size bytes and not beyond the mapping. Returns the
 * number of bytes read.
 */
static size_t read_file(const struct core_memory *memory, remote_addr addr, void *buffer,
			size_t size)
{
	const struct mapping *mapping = memory->backing ? maps_find(memory->maps, addr) : NULL;
	int fd = mapping ? memory->backing->file_fd(memory->backing, mapping) : -1;
	uint64_t file_offset;

	if (fd < 0 ||
	    __builtin_add_overflow(mapping->file_offset, addr - mapping->start, &file_offset))
		return 0;
	if (size > mapping->end - addr)
		size = mapping->end - addr;
	return file_read_at(fd, file_offset, buffer, size);
}

/*
 * Read from one source at addr, the core or a mapped file. Returns the number of bytes read: less
 * than size if the source ends, 0 if there is none.
 */
static size_t read_piece(struct core_memory *memory, remote_addr addr, void *buffer, size_t size)
{
	size_t index = maps_search(memory->saved, addr);
	const struct mapping *saved =
		index < memory->saved->nr_mappings ? &memory->saved->mappings[index] : NULL;

	if (saved && addr >= saved->start) {
		if (size > saved->end - addr)
			size = saved->end - addr;
		return file_blocks_read(memory->core, saved->file_offset + (addr - saved->start),
					buffer, size);
	}
	if (saved && size > saved->start - addr)
		size = saved->start - addr;
	return read_file(memory, addr, buffer, size);
}

static int core_read_ranges(struct remote_memory *remote, struct remote_range *ranges,
			    size_t nr_ranges)
{
	struct core_memory *memory = (struct core_memory *)remote;

	for (size_t i = 0; i < nr_ranges; i++) {
		struct remote_range *range = &ranges[i];
		size_t n = 1;

		/*
		 * No mapping contains the highest address, so the loop ends before an address
		 * wraps.
		 */
		for (range->done_bytes = 0; n && range->done_bytes < range->size;
		     range->done_bytes += n)
			n = read_piece(memory, range->addr + range->done_bytes,
				       (char *)range->buffer + range->done_bytes,
				       range->size - range->done_bytes);
	}
	return 0;
}

static const struct remote_memory_ops core_ops = {.read_ranges = core_read_ranges};

void core_memory_init(struct core_memory *memory, struct file_blocks *core,
		      const struct maps *saved, const struct maps *maps)
{
	*memory = (struct core_memory){
		.memory = {.ops = &core_ops},
		.core = core,
		.saved = saved,
		.maps = maps,
	};
}

void core_memory_set_backing(struct core_memory *memory, struct core_backing *backing)
{
	memory->backing = backing;
}
