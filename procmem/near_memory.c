/* SPDX-License-Identifier: MIT */
#include "procmem/near_memory.h"

#include <string.h>

/* Read one range from its cached page if that page can be read as a whole. */
static int read_one(struct near_memory *near, struct remote_range *range)
{
	const size_t offset = range->addr % NEAR_PAGE_BYTES;
	const remote_addr addr = range->addr - offset;
	struct near_page *page = &near->pages[addr / NEAR_PAGE_BYTES % NR_NEAR_PAGES];
	struct remote_range whole = {
		.addr = addr,
		.buffer = page->bytes,
		.size = NEAR_PAGE_BYTES,
	};
	int err;

	if (range->size > NEAR_PAGE_BYTES - offset)
		return remote_memory_read_ranges(near->inner, range, 1);
	if (page->addr != addr || !addr) {
		page->addr = 0;
		err = remote_memory_read_ranges(near->inner, &whole, 1);
		if (err)
			return err;
		if (whole.done_bytes != NEAR_PAGE_BYTES)
			return remote_memory_read_ranges(near->inner, range, 1);
		page->addr = addr;
	}
	memcpy(range->buffer, page->bytes + offset, range->size);
	range->done_bytes = range->size;
	return 0;
}

static int near_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			    size_t nr_ranges)
{
	struct near_memory *near = (struct near_memory *)memory;
	int err = 0;

	for (size_t i = 0; !err && i < nr_ranges; i++)
		err = read_one(near, &ranges[i]);
	return err;
}

void near_memory_init(struct near_memory *near, struct remote_memory *inner)
{
	static const struct remote_memory_ops ops = {
		.read_ranges = near_read_ranges,
	};

	near->memory.ops = &ops;
	near->inner = inner;
	near_memory_forget(near);
}

void near_memory_forget(struct near_memory *near)
{
	for (size_t i = 0; i < NR_NEAR_PAGES; i++)
		near->pages[i].addr = 0;
}
