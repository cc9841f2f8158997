/* SPDX-License-Identifier: MIT */
/*
 * A memory that is read through another one, page by page, and keeps the pages: for looks at
 * many small objects that lie near each other, each of which would be a system call.
 *
 * What is read is as old as its page. Small reads alone profit; others are handed on.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

enum { NEAR_PAGE_BYTES = 4096, NR_NEAR_PAGES = 64 };

struct near_memory {
	struct remote_memory memory; /* what is handed on */
	struct remote_memory *inner; /* borrowed as long as this is read */
	struct near_page {
		remote_addr addr; /* 0: none; the first page is mapped nowhere */
		uint8_t bytes[NEAR_PAGE_BYTES];
	} pages[NR_NEAR_PAGES]; /* each where its address says */
};

/* A memory with the errors of inner, by which checks are to be made. Nothing is owned. */
void near_memory_init(struct near_memory *near, struct remote_memory *inner);

/* Read everything anew from now on. */
void near_memory_forget(struct near_memory *near);
