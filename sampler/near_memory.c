/* SPDX-License-Identifier: MIT */
#include "sampler/near_memory.h"

#include <string.h>

/*
 * The page at addr, which begins one, or NULL if not all of it can be read. *ret_err: the others.
 */
static const uint8_t *get_page(struct near_memory *near, remote_addr addr, int *ret_err)
{
	const size_t i = addr / NEAR_PAGE_BYTES % NR_NEAR_PAGES;
	struct remote_range range = {
		.addr = addr,
		.buffer = near->pages[i].bytes,
		.size = NEAR_PAGE_BYTES,
	};

	*ret_err = 0;
	if (near->pages[i].addr == addr && addr)
		return near->pages[i].bytes;
	near->pages[i].addr = 0;
	*ret_err = remote_memory_read_ranges(near->inner, &range, 1);
	if (*ret_err || range.done_bytes != NEAR_PAGE_BYTES)
		return NULL;
	near->pages[i].addr = addr;
	return near->pages[i].bytes;
}

static int read_one(struct near_memory *near, struct remote_range *range)
{
	const size_t offset = range->addr % NEAR_PAGE_BYTES;
	const uint8_t *page = NULL;
	int err = 0;

	if (range->size <= NEAR_PAGE_BYTES - offset)
		page = get_page(near, range->addr - offset, &err);
	if (err)
		return err;
	if (!page)
		return remote_memory_read_ranges(near->inner, range, 1);
	memcpy(range->buffer, page + offset, range->size);
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

static int near_check(struct remote_memory *memory)
{
	return remote_memory_check(((struct near_memory *)memory)->inner);
}

void near_memory_init(struct near_memory *near, struct remote_memory *inner)
{
	static const struct remote_memory_ops ops = {
		.read_ranges = near_read_ranges,
		.check = near_check,
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
