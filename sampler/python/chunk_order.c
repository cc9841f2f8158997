/* SPDX-License-Identifier: MIT */
#include "sampler/python/chunk_order.h"

/* So far a chunk is looked for: few are popped and taken again at a time. */
enum { MAX_CHUNKS_APART = 4 };

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

void chunk_order_renew(struct stack_copy *stack, const struct py_offsets *offsets)
{
	for (size_t i = stack->first_chunk; i + 1 < stack->nr_chunks; i++) {
		struct chunk_copy *chunks = stack->chunks;
		size_t end = stack->nr_chunks - i - 1 > MAX_CHUNKS_APART ? i + 1 + MAX_CHUNKS_APART
									 : stack->nr_chunks;
		size_t next = i + 1;

		while (next < end && !follows(&chunks[next], &chunks[i], offsets))
			next++;
		if (next == end)
			return;
		if (next != i + 1) {
			struct chunk_copy moved = chunks[next];

			chunks[next] = chunks[i + 1];
			chunks[i + 1] = moved;
		}
	}
}
