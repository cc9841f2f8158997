/* SPDX-License-Identifier: MIT */
#include "sampler/python/chunk_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/circle.h"

/* CPython's smallest chunk has 16 KiB; a frame of the largest co_stacksize needs 64 MiB. */
enum { CHUNK_MIN_BYTES = 1024, CHUNK_MAX_BYTES = 256 << 20 };

/* Of a larger new chunk only so much is copied until it is seen to be used. */
enum { FIRST_WINDOW_BYTES = 64 << 10 };

/*
 * A chunk that was popped is copied for so many ticks more, mapped or not: a recursion that
 * comes back takes it again. So many of them are kept, 8 MiB of stack: each that is not
 * mapped at a tick costs a system call, half a microsecond, and a recursion that goes
 * further up and down than that finds the others anew by their headers.
 */
enum { SPARE_MAX_TICKS = 1024, MAX_SPARES = 512 };

/* An array that has room for so many times more than it holds is made smaller. */
enum { TOO_MUCH_ROOM = 4, LEAST_TO_SHRINK = 64 };

/*
 * So many addresses may be compared to find where new chunks end on known ones. Beyond,
 * all are read anew.
 */
#define MAX_HEADER_LOOKUPS (1u << 22)

void chunk_chain_drop(struct stack_copy *stack, size_t nr_kept)
{
	size_t max_kept = nr_kept ? 2 * nr_kept : 2;
	struct chunk_copy *chunks;

	for (size_t i = nr_kept; i < stack->nr_chunks; i++) {
		struct chunk_copy *chunk = &stack->chunks[i];

		copy_budget_give(stack->budget,
				 PIECE_COST_BYTES + chunk->max_bytes + chunk->before_max_bytes);
		free(chunk->bytes);
		free(chunk->before);
	}
	if (nr_kept < stack->nr_chunks)
		stack->nr_chunks = nr_kept;
	if (stack->max_chunks < LEAST_TO_SHRINK || stack->max_chunks / TOO_MUCH_ROOM < max_kept)
		return;
	chunks = reallocarray(stack->chunks, max_kept, sizeof(*chunks));
	if (chunks) {
		stack->chunks = chunks;
		stack->max_chunks = max_kept;
	}
}

size_t chunk_chain_find(const struct stack_copy *stack, remote_addr addr)
{
	size_t i = stack->nr_chunks;

	/* The one asked for is nearly always the newest or the one before. */
	while (i > 0 && stack->chunks[i - 1].addr != addr)
		i--;
	return i ? i - 1 : stack->nr_chunks;
}

/* A chunk as its header tells. */
struct chunk_header {
	remote_addr addr;
	remote_addr previous_addr;
	size_t size_bytes;
	uint64_t first_word; /* unused in the oldest chunk (push_chunk()) */
};

static int read_chunk_header(struct remote_memory *memory, const struct py_offsets *offsets,
			     remote_addr addr, struct chunk_header *ret_header)
{
	uint8_t header[40];
	uint64_t size;
	int err = remote_memory_read(memory, addr, header, offsets->chunk.data + sizeof(uint64_t));

	if (err)
		return err;
	size = field_u64(header, offsets->chunk.size);
	if (addr % sizeof(uint64_t) || size < CHUNK_MIN_BYTES || size > CHUNK_MAX_BYTES)
		return -EBADMSG;
	*ret_header = (struct chunk_header){
		.addr = addr,
		.previous_addr = field_u64(header, offsets->chunk.previous),
		.size_bytes = (size_t)size,
		.first_word = field_u64(header, offsets->chunk.data),
	};
	return 0;
}

static int append_chunk(struct stack_copy *stack, const struct chunk_header *header)
{
	size_t first_bytes = header->size_bytes;

	if (!copy_budget_take(stack->budget, PIECE_COST_BYTES))
		return -E2BIG;
	if (stack->nr_chunks == stack->max_chunks) {
		size_t max_chunks = stack->max_chunks ? stack->max_chunks * 2 : 2;
		struct chunk_copy *chunks =
			reallocarray(stack->chunks, max_chunks, sizeof(*chunks));

		if (!chunks) {
			copy_budget_give(stack->budget, PIECE_COST_BYTES);
			return -ENOMEM;
		}
		stack->chunks = chunks;
		stack->max_chunks = max_chunks;
	}
	if (first_bytes > FIRST_WINDOW_BYTES)
		first_bytes = FIRST_WINDOW_BYTES;
	stack->chunks[stack->nr_chunks++] = (struct chunk_copy){
		.addr = header->addr,
		.size_bytes = header->size_bytes,
		.high_bytes = {0, first_bytes},
		.used_tick = stack->tick,
	};
	return 0;
}

/* The headers of chunks that are new, newest first, and the known one below them (0: none). */
struct chunk_headers {
	struct chunk_header *headers; /* owned */
	size_t nr_headers;
	remote_addr known_addr;
};

/* Whether the walk over headers, so many of which were new, has come to a known chunk. */
static bool is_known(const struct stack_copy *stack, remote_addr addr, size_t nr_headers)
{
	return nr_headers * stack->nr_chunks <= MAX_HEADER_LOOKUPS &&
	       chunk_chain_find(stack, addr) < stack->nr_chunks;
}

/* Whether there is no room to keep so many more chunks. */
static bool out_of_budget(const struct stack_copy *stack, size_t nr_chunks)
{
	const struct copy_budget *budget = stack->budget;

	return budget && nr_chunks * PIECE_COST_BYTES + budget->used_bytes > budget->max_bytes;
}

/*
 * Read headers from addr down until stack knows the chunk, or to the oldest. -E2BIG
 * for more than a stack can have, and for a circle.
 */
static int read_headers(const struct stack_copy *stack, struct remote_memory *memory,
			const struct py_offsets *offsets, remote_addr addr,
			struct chunk_headers *found)
{
	struct circle circle = {0};
	size_t total_bytes = 0;

	while (addr && !is_known(stack, addr, found->nr_headers)) {
		size_t nr = found->nr_headers;
		int err;

		if (circle_closes(&circle, addr) || nr == MAX_CHUNKS ||
		    total_bytes > STACK_MAX_BYTES || out_of_budget(stack, nr + 1))
			return -E2BIG;
		if ((nr & (nr - 1)) == 0) {
			struct chunk_header *larger =
				reallocarray(found->headers, nr ? nr * 2 : 1, sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			found->headers = larger;
		}
		err = read_chunk_header(memory, offsets, addr, &found->headers[nr]);
		if (err)
			return err;
		total_bytes += found->headers[nr].size_bytes;
		addr = found->headers[nr].previous_addr;
		found->nr_headers++;
	}
	found->known_addr = addr;
	return 0;
}

/* Whether known and new chunks together are what a stack can have. */
static bool bounded(const struct stack_copy *stack, const struct chunk_headers *found)
{
	size_t total_bytes = 0;

	for (size_t i = 0; i < stack->nr_chunks; i++)
		total_bytes += stack->chunks[i].size_bytes;
	for (size_t i = 0; i < found->nr_headers; i++)
		total_bytes += found->headers[i].size_bytes;
	return total_bytes <= STACK_MAX_BYTES && stack->nr_chunks + found->nr_headers <= MAX_CHUNKS;
}

/*
 * Whether the headers end at a chunk that was popped meanwhile: CPython keeps one of those,
 * which names no other chunk then, like the oldest one; but it was used from the start.
 */
static bool ends_popped(const struct chunk_headers *found)
{
	return !found->known_addr && found->nr_headers &&
	       found->headers[found->nr_headers - 1].first_word;
}

/* Reverse the order of the chunks from first up to end. */
static void reverse(struct chunk_copy *chunks, size_t first, size_t end)
{
	while (first + 1 < end) {
		struct chunk_copy moved = chunks[first];

		chunks[first++] = chunks[--end];
		chunks[end] = moved;
	}
}

int chunk_chain_follow(struct stack_copy *stack, struct remote_memory *memory,
		       const struct py_offsets *offsets, remote_addr newest_addr)
{
	struct chunk_headers found = {0};
	int err = read_headers(stack, memory, offsets, newest_addr, &found);
	size_t first = 0, nr_known;

	if (!err && stack->nr_chunks && ends_popped(&found))
		err = -EBADMSG;
	if (!err && found.known_addr)
		first = chunk_chain_find(stack, found.known_addr) + 1;
	if (!err)
		chunk_chain_drop(stack, first ? first + MAX_SPARES : 0);
	if (!err && !bounded(stack, &found)) {
		chunk_chain_drop(stack, 0);
		err = -E2BIG;
	}
	/* They came newest first and are kept oldest first, before those that were popped. */
	nr_known = stack->nr_chunks;
	while (!err && found.nr_headers > 0)
		err = append_chunk(stack, &found.headers[--found.nr_headers]);
	if (nr_known > first) {
		reverse(stack->chunks, first, nr_known);
		reverse(stack->chunks, nr_known, stack->nr_chunks);
		reverse(stack->chunks, first, stack->nr_chunks);
	}
	free(found.headers);
	return err == -EFAULT || err == -EBADMSG || err == -E2BIG ? 0 : err;
}

/* Whether a chunk above the newest one is not to be copied any more. */
static bool is_settled(const struct stack_copy *stack, const struct chunk_copy *chunk)
{
	return stack->tick - chunk->used_tick > SPARE_MAX_TICKS;
}

/*
 * Chunks that were popped are kept as long as they may be taken again, the first ones
 * above the newest.
 */
static void learn_spares(struct stack_copy *stack, size_t first)
{
	size_t nr_kept = first;

	chunk_chain_drop(stack, first + MAX_SPARES);
	for (size_t i = first; i < stack->nr_chunks; i++) {
		stack->chunks[i].spare_tick = stack->tick;
		if (!is_settled(stack, &stack->chunks[i]))
			nr_kept = i + 1;
	}
	chunk_chain_drop(stack, nr_kept);
}

int chunk_chain_learn(struct stack_copy *stack, struct remote_memory *memory,
		      const struct py_offsets *offsets)
{
	size_t newest = chunk_chain_find(stack, stack->newest_chunk_addr);

	if (newest == stack->nr_chunks)
		return chunk_chain_follow(stack, memory, offsets, stack->newest_chunk_addr);
	for (size_t i = 0; i <= newest; i++)
		stack->chunks[i].used_tick = stack->tick;
	learn_spares(stack, newest + 1);
	return 0;
}
