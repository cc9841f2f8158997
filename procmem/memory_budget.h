/* SPDX-License-Identifier: MIT */
/*
 * A memory that reads another one until a budget is used up: for searches in what the
 * target has made, which may lead from one place to the next for ever.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"

/* So many pieces of a read, or so many bytes of it, cost as much as a read more. */
enum { BUDGET_PIECES_PER_READ = 8, BUDGET_BYTES_PER_READ = 1024 };

struct memory_budget {
	struct remote_memory memory; /* to read through */
	struct remote_memory *inner; /* borrowed */
	uint64_t reads_left;
};

/*
 * Let so many reads of inner through. The first one that costs more than is left fails
 * with -E2BIG, and so does every one after it; a check is passed on and costs nothing.
 */
void memory_budget_init(struct memory_budget *budget, struct remote_memory *inner,
			uint64_t max_reads);
