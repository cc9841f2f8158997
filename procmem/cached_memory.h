/* SPDX-License-Identifier: MIT */
/*
 * A memory that reads through another one page by page and caches the pages. It saves system calls
 * when many small objects near each other are read. Data is as old as its cached page. Reads that
 * cross a page boundary are not cached.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

enum { CACHED_PAGE_BYTES = 4096, NR_CACHED_PAGES = 64 };

struct cached_memory {
	struct remote_memory memory; /* pass this one to readers */
	struct remote_memory *inner; /* where reads go; borrowed for the life of this struct */
	struct cached_page {
		remote_addr addr; /* 0: empty; the page at address 0 is never mapped */
		uint8_t bytes[CACHED_PAGE_BYTES];
	} pages[NR_CACHED_PAGES]; /* indexed by page address */
};

/*
 * Set up a memory that reads through inner and returns its errors. It has no check operation:
 * check inner instead. Nothing is owned.
 */
void cached_memory_init(struct cached_memory *cached, struct remote_memory *inner);

/* Drop all cached pages. */
void cached_memory_clear(struct cached_memory *cached);
