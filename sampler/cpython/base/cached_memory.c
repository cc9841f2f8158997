/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/cached_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

struct cached_page {
	remote_addr addr;
	uint64_t read_age, used_age;
	uint8_t bytes[CACHED_PAGE_BYTES];
};

static void drop_all(struct cached_memory *cached)
{
	for (uint32_t i = 0; i < cached->nr_pages; i++)
		free(cached->pages[i]);
	cached->nr_pages = 0;
	addr_map_done(&cached->map);
}

/* The page at addr, possibly not valid; NULL: out of memory. */
static struct cached_page *get_page(struct cached_memory *cached, remote_addr addr)
{
	struct cached_page *page = addr_map_get(&cached->map, addr);
	struct cached_page **pages;

	if (page)
		return page;
	if (cached->nr_pages == CACHED_PAGES_MAX)
		drop_all(cached);
	pages = array_reserve(cached->pages, cached->nr_pages + 1, &cached->max_pages,
			      sizeof(struct cached_page *));
	if (!pages)
		return NULL;
	cached->pages = pages;
	page = malloc(sizeof(*page));
	if (!page || addr_map_put(&cached->map, addr, page)) {
		free(page);
		return NULL;
	}
	page->addr = addr;
	page->read_age = 0;
	page->used_age = 0;
	pages[cached->nr_pages++] = page;
	return page;
}

/* Read one range from its cached page if that page can be read as a whole. */
static int read_one(struct cached_memory *cached, struct remote_range *range)
{
	const size_t offset = range->addr % CACHED_PAGE_BYTES;
	struct cached_page *page;

	if (range->size > CACHED_PAGE_BYTES - offset)
		return remote_memory_read_ranges(cached->inner, range, 1);
	page = get_page(cached, range->addr - offset);
	if (!page)
		return -ENOMEM;
	if (page->read_age != cached->age) {
		struct remote_range whole = {
			.addr = page->addr,
			.buffer = page->bytes,
			.size = CACHED_PAGE_BYTES,
		};
		const int err = remote_memory_read_ranges(cached->inner, &whole, 1);

		page->read_age = 0;
		if (err)
			return err;
		if (whole.done_bytes != CACHED_PAGE_BYTES)
			return remote_memory_read_ranges(cached->inner, range, 1);
		page->read_age = cached->age;
	}
	page->used_age = cached->age;
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

	*cached = (struct cached_memory){.memory.ops = &ops, .inner = inner, .age = 1};
}

void cached_memory_done(struct cached_memory *cached)
{
	drop_all(cached);
	free(cached->pages);
	free(cached->ranges);
	*cached = (struct cached_memory){.nr_pages = 0};
}

void cached_memory_clear(struct cached_memory *cached)
{
	cached->age++;
}

int cached_memory_renew(struct cached_memory *cached)
{
	const uint64_t used_age = cached->age++;
	struct remote_range *ranges = array_reserve(cached->ranges, cached->nr_pages + 1,
						    &cached->max_ranges, sizeof(*ranges));
	uint32_t nr = 0, r = 0;
	int err;

	if (!ranges)
		return -ENOMEM;
	cached->ranges = ranges;
	for (uint32_t i = 0; i < cached->nr_pages; i++) {
		struct cached_page *page = cached->pages[i];

		if (page->used_age == used_age && page->read_age == used_age)
			ranges[nr++] = (struct remote_range){
				.addr = page->addr,
				.buffer = page->bytes,
				.size = CACHED_PAGE_BYTES,
			};
	}
	err = remote_memory_read_ranges(cached->inner, ranges, nr);
	for (uint32_t i = 0; !err && i < cached->nr_pages; i++) {
		struct cached_page *page = cached->pages[i];

		if (page->used_age != used_age || page->read_age != used_age)
			continue;
		page->read_age = ranges[r++].done_bytes == CACHED_PAGE_BYTES ? cached->age : 0;
	}
	return err;
}
