/* SPDX-License-Identifier: MIT */
/*
 * A memory that reads through another one page by page and caches the pages. It saves system calls
 * when many small objects near each other are read. Data is as old as its cached page. Reads that
 * cross a page boundary are passed on uncached.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

enum { NEAR_PAGE_BYTES = 4096, NR_NEAR_PAGES = 64 };

struct near_memory {
	struct remote_memory memory; /* pass this one to readers */
	struct remote_memory *inner; /* where reads go; borrowed for the life of this struct */
	struct near_page {
		remote_addr addr; /* 0: empty; the page at address 0 is never mapped */
		uint8_t bytes[NEAR_PAGE_BYTES];
	} pages[NR_NEAR_PAGES]; /* indexed by page address */
};

/*
 * Set up a memory that reads through inner and returns its errors. It has no check operation:
 * check inner instead. Nothing is owned.
 */
void near_memory_init(struct near_memory *near, struct remote_memory *inner);

/* Drop all cached pages. */
void near_memory_forget(struct near_memory *near);
