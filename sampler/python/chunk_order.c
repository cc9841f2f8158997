/* SPDX-License-Identifier: MIT */
#include "sampler/python/chunk_order.h"

#include <string.h>

/*
 * So many chunks are looked at in vain in one copy: enough for 360 that a recursion has taken
 * again in the reverse order.
 */
enum { MAX_ORDER_STEPS = 1 << 16 };

/* A chunk that was popped so many ticks ago stays where it is. */
enum { SETTLED_TICKS = 1024 };

bool chunk_comes_and_goes(const struct stack_copy *stack, const struct chunk_copy *chunk)
{
	return chunk->spare_tick && stack->tick - chunk->spare_tick < SETTLED_TICKS;
}

/* Whether chunk was begun above below, as their headers say. */
static bool follows(const struct chunk_copy *chunk, const struct chunk_copy *below,
		    const struct py_offsets *offsets)
{
	return chunk->done_bytes >= offsets->chunk.data &&
	       field_u64(chunk->bytes, offsets->chunk.previous) == below->addr;
}

/* Put the chunk at index from in the place of the one at to, before it. */
static void move_down(struct chunk_copy *chunks, size_t from, size_t to)
{
	struct chunk_copy moved = chunks[from];

	memmove(&chunks[to + 1], &chunks[to], (from - to) * sizeof(*chunks));
	chunks[to] = moved;
}

void chunk_order_renew(struct stack_copy *stack, const struct py_offsets *offsets)
{
	struct chunk_copy *chunks = stack->chunks;
	size_t nr_steps = 0;

	for (size_t i = stack->first_chunk; i + 1 < stack->nr_chunks; i++) {
		size_t next = i + 1;

		while (next < stack->nr_chunks && !follows(&chunks[next], &chunks[i], offsets))
			next++;
		nr_steps += next - i - 1;
		if (next == stack->nr_chunks || nr_steps > MAX_ORDER_STEPS)
			return;
		if (next != i + 1)
			move_down(chunks, next, i + 1);
	}
}
