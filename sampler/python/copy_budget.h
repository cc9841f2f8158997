/* SPDX-License-Identifier: MIT */
/*
 * What the copies of all threads of a process may take together. Amounts are in bytes; a
 * chunk or link counts for more than its buffers, since it is a piece of each read, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * What the copies of all threads of a process may take together: a target may have many
 * threads name the same memory. Each chunk is kept twice; so that is two stacks of
 * MAX_FRAMES, or 16,000 threads that are all new. What is beyond is lost (LOSS_CHUNK,
 * LOSS_LINK) until others need less.
 */
#define COPIES_MAX_BYTES (512u << 20)

struct copy_budget {
	size_t used_bytes;
	size_t max_bytes;
};

/*
 * What a chunk, beside its buffers, and a link count for: more than the memory that they
 * take, since each is up to three pieces of a read, 0.5 µs each.
 */
enum { PIECE_COST_BYTES = 1024 };

/* Take bytes; false, and nothing is taken, if there is not so much left. NULL bounds nothing. */
static inline bool copy_budget_take(struct copy_budget *budget, size_t bytes)
{
	if (!budget)
		return true;
	if (budget->used_bytes > budget->max_bytes ||
	    bytes > budget->max_bytes - budget->used_bytes)
		return false;
	budget->used_bytes += bytes;
	return true;
}

/* Give back what was taken. */
static inline void copy_budget_give(struct copy_budget *budget, size_t bytes)
{
	if (budget)
		budget->used_bytes -= bytes;
}
