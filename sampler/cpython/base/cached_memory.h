/* SPDX-License-Identifier: MIT */
/*
 * A memory that reads through another one page by page and caches the pages. It saves system calls
 * when many small objects near each other are read. Data is as old as its cached page. Reads that
 * cross a page boundary are not cached.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/addr_map.h"

enum { CACHED_PAGE_BYTES = 4096 };

/* Limit on the pages, 64 MiB. When it is reached all are dropped, and read again if needed. */
enum { CACHED_PAGES_MAX = 1 << 14 };

struct cached_page;

/* All private but memory. */
struct cached_memory {
	struct remote_memory memory; /* pass this one to readers */
	struct remote_memory *inner; /* where reads go; borrowed for the life of this struct */
	struct cached_page **pages;  /* owned, and each element, too */
	uint32_t nr_pages, max_pages;
	struct addr_map map;	     /* from addresses to pages */
	uint64_t age;		     /* pages of another age are not valid */
	struct remote_range *ranges; /* owned; those of a renewal */
	uint32_t max_ranges;
};

/*
 * Set up a memory that reads through inner and returns its errors, or -ENOMEM. It has no check
 * operation: check inner instead. cached_memory_done() frees it, and accepts one that is all zero.
 */
void cached_memory_init(struct cached_memory *cached, struct remote_memory *inner);
void cached_memory_done(struct cached_memory *cached);

/* From now on everything is read anew. */
void cached_memory_clear(struct cached_memory *cached);

/*
 * The same, and read what was used since the last call at once, in one system call for each
 * thousand pages. Errors of a read, or -ENOMEM.
 */
int cached_memory_renew(struct cached_memory *cached);
