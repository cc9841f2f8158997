/* SPDX-License-Identifier: MIT */
#include "sampler/python/stack_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/circle.h"
#include "sampler/python/link_copy.h"

/* CPython's smallest chunk has 16 KiB; a frame of the largest co_stacksize needs 64 MiB. */
enum { CHUNK_MIN_BYTES = 1024, CHUNK_MAX_BYTES = 256 << 20 };

/*
 * How much behind the furthest use of a chunk is copied as well, so that calls
 * that go a little deeper than ever before are not lost; and for how many ticks
 * the furthest use is remembered (that long to twice that long). Unused memory
 * behind the stack is cheap to copy: nobody writes it.
 */
enum { WINDOW_SLACK_BYTES = 512, WINDOW_EPOCH_TICKS = 512 };

/* Of a larger new chunk only so much is copied until it is seen to be used. */
enum { FIRST_WINDOW_BYTES = 64 << 10 };

/* A chunk that was dropped is watched for so many ticks; it is often taken again. */
enum { SPARE_MAX_TICKS = 1024, MAX_SPARES = 2, GONE_MAX_TICKS = 64 };

/*
 * Links that were not part of a stack for so many ticks are forgotten; those that ran all
 * the same, but may not have when the chunks were copied, a little later. The memory of
 * frame objects is used again for longer: of generators of a microsecond on 3.8, 3.2 % of
 * the samples were lost with 8 ticks and 0.1 % with 64, with no more reads.
 */
enum {
	LINK_MAX_UNUSED_TICKS = 8,
	LINK_MAX_REFUSED_TICKS = 64,
	FRAME_MAX_UNUSED_TICKS = 64,
};

/* A frame object that did not change for so many ticks is a caller that stays. */
enum { FRAME_SETTLED_TICKS = 64 };

/*
 * What a chunk, beside its buffers, and a link count for in the budget: more than the
 * memory that they take, since each is up to three pieces of a read, 0.5 µs each.
 */
enum { PIECE_COST_BYTES = 1024 };

/* An array that has room for so many times more than it holds is made smaller. */
enum { TOO_MUCH_ROOM = 4, LEAST_TO_SHRINK = 64 };

/*
 * So many addresses may be compared to find where new chunks end on known ones. Beyond,
 * all are read anew.
 */
#define MAX_HEADER_LOOKUPS (1u << 22)

/* Take bytes out of what all threads share; false if there is not so much left. */
static bool budget_take(struct stack_copy *stack, size_t bytes)
{
	struct copy_budget *budget = stack->budget;

	if (!budget)
		return true;
	if (budget->used_bytes > budget->max_bytes ||
	    bytes > budget->max_bytes - budget->used_bytes)
		return false;
	budget->used_bytes += bytes;
	return true;
}

static void budget_give(struct stack_copy *stack, size_t bytes)
{
	if (stack->budget)
		stack->budget->used_bytes -= bytes;
}

static void drop_chunks(struct stack_copy *stack, size_t nr_kept)
{
	size_t max_kept = nr_kept ? 2 * nr_kept : 2;
	struct chunk_copy *chunks;

	for (size_t i = nr_kept; i < stack->nr_chunks; i++) {
		struct chunk_copy *chunk = &stack->chunks[i];

		budget_give(stack, PIECE_COST_BYTES + chunk->max_bytes + chunk->before_max_bytes);
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

void stack_copy_forget_chunks(struct stack_copy *stack)
{
	drop_chunks(stack, 0);
}

void stack_copy_done(struct stack_copy *stack)
{
	if (!stack)
		return;
	drop_chunks(stack, 0);
	budget_give(stack, stack->nr_links * PIECE_COST_BYTES);
	free(stack->chunks);
	free(stack->links);
	free(stack->link_order);
	*stack = (struct stack_copy){0};
}

/* Give the buffer of a chunk room for so many bytes, not far too much. 0, -ENOMEM, -E2BIG. */
static int make_room(struct stack_copy *stack, struct chunk_copy *chunk, size_t want)
{
	uint8_t *bytes;

	if (want <= chunk->max_bytes && want >= chunk->max_bytes / TOO_MUCH_ROOM)
		return 0;
	if (want > chunk->max_bytes && !budget_take(stack, want - chunk->max_bytes))
		return -E2BIG;
	bytes = realloc(chunk->bytes, want);
	if (!bytes) {
		if (want > chunk->max_bytes)
			budget_give(stack, want - chunk->max_bytes);
		return -ENOMEM;
	}
	if (want < chunk->max_bytes)
		budget_give(stack, chunk->max_bytes - want);
	chunk->bytes = bytes;
	chunk->max_bytes = want;
	return 0;
}

int chunk_copy_begin(struct stack_copy *stack, struct chunk_copy *chunk, size_t from_bytes,
		     size_t *ret_window_bytes)
{
	size_t high = chunk->high_bytes[0] > chunk->high_bytes[1] ? chunk->high_bytes[0]
								  : chunk->high_bytes[1];
	size_t want = high + WINDOW_SLACK_BYTES;
	uint8_t *bytes = chunk->before;
	size_t max_bytes = chunk->before_max_bytes;

	if (want > chunk->size_bytes)
		want = chunk->size_bytes;
	chunk->before = chunk->bytes;
	chunk->before_from_bytes = chunk->from_bytes;
	chunk->before_bytes = chunk->done_bytes;
	chunk->before_max_bytes = chunk->max_bytes;
	chunk->bytes = bytes;
	chunk->max_bytes = max_bytes;
	chunk->from_bytes = from_bytes < want ? from_bytes : 0;
	chunk->has_header = !chunk->from_bytes;
	chunk->done_bytes = 0;
	*ret_window_bytes = want;
	return make_room(stack, chunk, want);
}

size_t chunk_copy_same_bytes(const struct chunk_copy *chunk)
{
	enum { BLOCK_BYTES = 128, WORD_BYTES = sizeof(uint64_t) };
	size_t end =
		chunk->done_bytes < chunk->before_bytes ? chunk->done_bytes : chunk->before_bytes;
	size_t same = chunk->from_bytes;

	if (chunk->before_from_bytes > same || end < same)
		return same;
	while (end - same >= BLOCK_BYTES &&
	       memcmp(chunk->bytes + same, chunk->before + same, BLOCK_BYTES) == 0)
		same += BLOCK_BYTES;
	while (end - same >= WORD_BYTES &&
	       field_u64(chunk->bytes, same) == field_u64(chunk->before, same))
		same += WORD_BYTES;
	return same;
}

/*
 * A window that begins so little behind the start of its chunk is copied from there: a
 * header by itself costs as much as a page.
 */
enum { LEAST_TO_LEAVE_OUT = 2048 };

void stack_copy_choose_start(struct stack_copy *stack, size_t *ret_from_bytes)
{
	const struct chunk_copy *chunk =
		stack->from_addr ? stack_copy_chunk_of(stack, stack->from_addr) : NULL;

	stack->first_chunk = chunk ? (size_t)(chunk - stack->chunks) : 0;
	*ret_from_bytes = chunk ? (size_t)(stack->from_addr - chunk->addr) : 0;
	if (*ret_from_bytes < LEAST_TO_LEAVE_OUT)
		*ret_from_bytes = 0;
}

static size_t chunk_index(const struct stack_copy *stack, remote_addr addr)
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

	if (!budget_take(stack, PIECE_COST_BYTES))
		return -E2BIG;
	if (stack->nr_chunks == stack->max_chunks) {
		size_t max_chunks = stack->max_chunks ? stack->max_chunks * 2 : 2;
		struct chunk_copy *chunks =
			reallocarray(stack->chunks, max_chunks, sizeof(*chunks));

		if (!chunks) {
			budget_give(stack, PIECE_COST_BYTES);
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
	       chunk_index(stack, addr) < stack->nr_chunks;
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

int stack_copy_follow(struct stack_copy *stack, struct remote_memory *memory,
		      const struct py_offsets *offsets, remote_addr newest_addr)
{
	struct chunk_headers found = {0};
	int err = read_headers(stack, memory, offsets, newest_addr, &found);

	if (!err && stack->nr_chunks && ends_popped(&found))
		err = -EBADMSG;
	if (!err)
		drop_chunks(stack, found.known_addr ? chunk_index(stack, found.known_addr) + 1 : 0);
	if (!err && !bounded(stack, &found)) {
		drop_chunks(stack, 0);
		err = -E2BIG;
	}
	/* They came newest first and are kept oldest first. */
	while (!err && found.nr_headers > 0)
		err = append_chunk(stack, &found.headers[--found.nr_headers]);
	free(found.headers);
	return err == -EFAULT || err == -EBADMSG || err == -E2BIG ? 0 : err;
}

static void learn_window(const struct stack_copy *stack, const struct py_offsets *offsets,
			 struct chunk_copy *chunk, bool grew)
{
	uint64_t used = stack->datastack_top_addr - chunk->addr;
	uint64_t top;

	if (stack->epoch_tick == stack->tick) {
		chunk->high_bytes[1] = chunk->high_bytes[0];
		chunk->high_bytes[0] = 0;
	}
	if (used <= chunk->size_bytes && used > chunk->high_bytes[0])
		chunk->high_bytes[0] = used;
	if (chunk->has_header && chunk->done_bytes >= offsets->chunk.data) {
		top = field_u64(chunk->bytes, offsets->chunk.top);
		if (top < chunk->size_bytes / sizeof(uint64_t) &&
		    top * sizeof(uint64_t) + offsets->chunk.data > chunk->high_bytes[0])
			chunk->high_bytes[0] = top * sizeof(uint64_t) + offsets->chunk.data;
	}
	if (grew)
		chunk->high_bytes[0] = chunk->size_bytes;
}

/* For how long a link is kept that is not part of a stack. */
static uint64_t max_unused_ticks(const struct stack_copy *stack, const struct py_offsets *offsets,
				 const struct link_copy *link)
{
	if (offsets->frame.lasti != OFFSET_ABSENT)
		return FRAME_MAX_UNUSED_TICKS;
	return stack->tick - link->ran_tick <= LINK_MAX_UNUSED_TICKS ? LINK_MAX_REFUSED_TICKS
								     : LINK_MAX_UNUSED_TICKS;
}

/*
 * Forget links that have not been used for long, and those that cannot be read:
 * each of them would break the tick's read in two. The order of the others stays.
 */
static void drop_links(struct stack_copy *stack, const struct py_offsets *offsets)
{
	struct link_copy *links;
	size_t nr_kept = 0;

	for (size_t i = 0; i < stack->nr_links; i++) {
		const struct link_copy *link = &stack->links[i];

		if (!link->valid ||
		    stack->tick - link->used_tick > max_unused_ticks(stack, offsets, link))
			continue;
		if (nr_kept != i)
			stack->links[nr_kept] = *link;
		stack->link_order[nr_kept] = (uint32_t)nr_kept;
		nr_kept++;
	}
	budget_give(stack, (stack->nr_links - nr_kept) * PIECE_COST_BYTES);
	stack->nr_links = nr_kept;
	if (stack->max_links < LEAST_TO_SHRINK || nr_kept > stack->max_links / TOO_MUCH_ROOM)
		return;
	links = reallocarray(stack->links, stack->max_links / 2, sizeof(*links));
	if (links) {
		stack->links = links;
		stack->max_links /= 2;
	}
}

/*
 * Chunks that were popped are kept as long as they may be taken again, the first ones
 * above the newest.
 */
static void learn_spares(struct stack_copy *stack, size_t first)
{
	size_t nr_kept = first;

	drop_chunks(stack, first + MAX_SPARES);
	if (stack->nr_chunks == first)
		stack->spare_ticks = 0;
	else if (stack->spare_ticks++ > SPARE_MAX_TICKS)
		drop_chunks(stack, first);
	for (size_t i = first; i < stack->nr_chunks; i++) {
		struct chunk_copy *chunk = &stack->chunks[i];

		chunk->spare_tick = stack->tick;
		chunk->gone_ticks = chunk->done_bytes ? 0 : chunk->gone_ticks + 1;
		if (chunk->gone_ticks <= GONE_MAX_TICKS)
			nr_kept = i + 1;
	}
	drop_chunks(stack, nr_kept);
}

int stack_copy_learn(struct stack_copy *stack, struct remote_memory *memory,
		     const struct py_offsets *offsets, bool grew)
{
	size_t newest = chunk_index(stack, stack->newest_chunk_addr);

	stack->nr_steps = 0;
	stack->wants_header = false;
	if (stack->tick >= stack->epoch_tick + WINDOW_EPOCH_TICKS)
		stack->epoch_tick = stack->tick;
	for (size_t i = stack->first_chunk; i < stack->nr_chunks; i++)
		learn_window(stack, offsets, &stack->chunks[i], grew && i + 2 >= stack->nr_chunks);
	drop_links(stack, offsets);
	if (offsets->frame.lasti != OFFSET_ABSENT)
		stack_copy_sort_frames(stack);
	if (newest == stack->nr_chunks) {
		stack->spare_ticks = 0;
		return stack_copy_follow(stack, memory, offsets, stack->newest_chunk_addr);
	}
	learn_spares(stack, newest + 1);
	return 0;
}

/* Make room for as many links again. False: out of memory. */
static bool grow_links(struct stack_copy *stack)
{
	size_t max_links = stack->max_links ? stack->max_links * 2 : 8;
	struct link_copy *links = reallocarray(stack->links, max_links, sizeof(*links));
	uint32_t *order;

	if (!links)
		return false;
	stack->links = links;
	order = reallocarray(stack->link_order, 2 * max_links, sizeof(*order));
	if (!order)
		return false;
	stack->link_order = order;
	stack->max_links = max_links;
	return true;
}

int stack_copy_add_link(struct stack_copy *stack, struct remote_memory *memory,
			const struct py_offsets *offsets, remote_addr addr)
{
	struct link_copy *link;
	struct remote_range range;
	int err;

	if (stack->nr_links == MAX_LINKS || !budget_take(stack, PIECE_COST_BYTES))
		return -E2BIG;
	if (stack->nr_links == stack->max_links && !grow_links(stack)) {
		budget_give(stack, PIECE_COST_BYTES);
		return -ENOMEM;
	}
	stack->link_order[stack->nr_links] = (uint32_t)stack->nr_links;
	link = &stack->links[stack->nr_links++];
	*link = (struct link_copy){.addr = addr};
	range = (struct remote_range){
		.addr = addr,
		.buffer = link->bytes,
		.size = frame_head_bytes(offsets),
	};
	err = remote_memory_read_ranges(memory, &range, 1);
	link->valid = !err && range.done_bytes == range.size;
	link->twice = link_is_generator(link, offsets);
	link_learn(link, offsets, stack->tick);
	/* Not part of a stack yet, but not to be forgotten at once either. */
	link->used_tick = stack->tick - 1;
	link->changed_tick = stack->tick;
	return err;
}

/* Whether a frame object has called others lately, and came and went, or changed. */
static bool changes(const struct stack_copy *stack, const struct link_copy *link)
{
	return link->called_tick && stack->tick - link->called_tick < FRAME_SETTLED_TICKS &&
	       stack->tick - link->changed_tick < FRAME_SETTLED_TICKS;
}

/* The place of a link among places by depth: a stack has no more frames than links. */
static uint32_t depth_of(const struct stack_copy *stack, const struct link_copy *link)
{
	uint32_t deepest = (uint32_t)stack->nr_links - 1;

	return link->depth < deepest ? deepest - link->depth : 0;
}

/* Put the links that are copied twice, or the others, in order from place first on. */
static uint32_t sort_by_depth(struct stack_copy *stack, bool twice, uint32_t first)
{
	uint32_t nr = (uint32_t)stack->nr_links;
	uint32_t *next = stack->link_order + stack->max_links; /* place, by depth */

	memset(next, 0, nr * sizeof(*next));
	for (uint32_t i = 0; i < nr; i++)
		if (stack->links[i].twice == twice)
			next[depth_of(stack, &stack->links[i])]++;
	for (uint32_t depth = 0; depth < nr; depth++) {
		uint32_t nr_here = next[depth];

		next[depth] = first;
		first += nr_here;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (stack->links[i].twice == twice)
			stack->link_order[next[depth_of(stack, &stack->links[i])]++] = i;
	return first;
}

void stack_copy_sort_frames(struct stack_copy *stack)
{
	for (size_t i = 0; i < stack->nr_links; i++)
		stack->links[i].twice = changes(stack, &stack->links[i]);
	if (stack->nr_links)
		(void)sort_by_depth(stack, false, sort_by_depth(stack, true, 0));
}

const struct chunk_copy *stack_copy_chunk_of(struct stack_copy *stack, remote_addr addr)
{
	size_t i = stack->nr_chunks;

	while (i > 0 && addr - stack->chunks[i - 1].addr >= stack->chunks[i - 1].size_bytes)
		i--;
	stack->nr_steps += stack->nr_chunks - i;
	return i > 0 ? &stack->chunks[i - 1] : NULL;
}

bool stack_copy_holds(struct stack_copy *stack, remote_addr addr)
{
	return stack_copy_chunk_of(stack, addr) != NULL;
}

struct link_copy *stack_copy_find_link(struct stack_copy *stack, remote_addr addr)
{
	size_t i = stack->next_link < stack->nr_links ? stack->next_link : 0;

	for (size_t n = 0; n < stack->nr_links; n++, i++) {
		if (i >= stack->nr_links)
			i = 0;
		if (stack->links[i].addr == addr) {
			stack->nr_steps += n;
			stack->next_link = i + 1;
			return &stack->links[i];
		}
	}
	stack->nr_steps += stack->nr_links;
	return NULL;
}
