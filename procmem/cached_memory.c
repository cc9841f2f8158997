/* SPDX-License-Identifier: MIT */
#include "procmem/cached_memory.h"

#include <string.h>

/* Read one range from its cached page if that page can be read as a whole. */
static int read_one(struct cached_memory *cached, struct remote_range *range)
{
	const size_t offset = range->addr % CACHED_PAGE_BYTES;
	const remote_addr addr = range->addr - offset;
	struct cached_page *page = &cached->pages[addr / CACHED_PAGE_BYTES % NR_CACHED_PAGES];
	struct remote_range whole = {
		.addr = addr,
		.buffer = page->bytes,
		.size = CACHED_PAGE_BYTES,
	};
	int err;

	if (range->size > CACHED_PAGE_BYTES - offset)
		return remote_memory_read_ranges(cached->inner, range, 1);
	if (page->addr != addr || !addr) {
		page->addr = 0;
		err = remote_memory_read_ranges(cached->inner, &whole, 1);
		if (err)
			return err;
		if (whole.done_bytes != CACHED_PAGE_BYTES)
			return remote_memory_read_ranges(cached->inner, range, 1);
		page->addr = addr;
	}
	memcpy(range->buffer, page->bytes + offset, range->size);
	range->done_bytes = range->size;
	return 0;
}

static int cached_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			      size_t nr_ranges)
{
	struct cached_memory *cached = (struct cached_memory *)memory;
	int err = 0;

	for (size_t i = 0; !err && i < nr_ranges; i++)
		err = read_one(cached, &ranges[i]);
	return err;
}

void cached_memory_init(struct cached_memory *cached, struct remote_memory *inner)
{
	static const struct remote_memory_ops ops = {
		.read_ranges = cached_read_ranges,
	};

	cached->memory.ops = &ops;
	cached->inner = inner;
	cached_memory_clear(cached);
}

void cached_memory_clear(struct cached_memory *cached)
{
	for (size_t i = 0; i < NR_CACHED_PAGES; i++)
		cached->pages[i].addr = 0;
}
