/* SPDX-License-Identifier: MIT */
#include "sampler/python/stack_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/chunk_chain.h"
#include "sampler/python/link_copy.h"

/*
 * How much behind the furthest use of a chunk is copied as well, so that calls
 * that go a little deeper than ever before are not lost; and for how many ticks
 * the furthest use is remembered (that long to twice that long). Unused memory
 * behind the stack is cheap to copy: nobody writes it.
 */
enum { WINDOW_SLACK_BYTES = 512, WINDOW_EPOCH_TICKS = 512 };

/*
 * Links that were not part of a stack for so many ticks are forgotten; those that ran all
 * the same, but may not have when the chunks were copied, a little later, and of those the
 * memory that several functions use much later: how fast it turns over would have to be
 * learnt anew. The memory of frame objects is used again for longer: of generators of a
 * microsecond on 3.8, 3.2 % of the samples were lost with 8 ticks and 0.1 % with 64, with no
 * more reads.
 */
enum {
	LINK_MAX_UNUSED_TICKS = 8,
	LINK_MAX_REFUSED_TICKS = 64,
	LINK_MAX_REUSED_TICKS = 4096,
	FRAME_MAX_UNUSED_TICKS = 64,
};

/* An array that has room for so many times more than it holds is made smaller. */
enum { TOO_MUCH_ROOM = 4, LEAST_TO_SHRINK = 64 };

/* A frame object that did not change for so many ticks is a caller that stays. */
enum { FRAME_SETTLED_TICKS = 64 };

void stack_copy_done(struct stack_copy *stack)
{
	if (!stack)
		return;
	chunk_chain_drop(stack, 0);
	copy_budget_give(stack->budget, stack->nr_links * PIECE_COST_BYTES);
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
	if (want > chunk->max_bytes && !copy_budget_take(stack->budget, want - chunk->max_bytes))
		return -E2BIG;
	bytes = realloc(chunk->bytes, want);
	if (!bytes) {
		if (want > chunk->max_bytes)
			copy_budget_give(stack->budget, want - chunk->max_bytes);
		return -ENOMEM;
	}
	if (want < chunk->max_bytes)
		copy_budget_give(stack->budget, chunk->max_bytes - want);
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
	if (stack->tick - link->ran_tick > LINK_MAX_UNUSED_TICKS)
		return LINK_MAX_UNUSED_TICKS;
	return link->reused ? LINK_MAX_REUSED_TICKS : LINK_MAX_REFUSED_TICKS;
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
	copy_budget_give(stack->budget, (stack->nr_links - nr_kept) * PIECE_COST_BYTES);
	stack->nr_links = nr_kept;
	if (stack->max_links < LEAST_TO_SHRINK || nr_kept > stack->max_links / TOO_MUCH_ROOM)
		return;
	links = reallocarray(stack->links, stack->max_links / 2, sizeof(*links));
	if (links) {
		stack->links = links;
		stack->max_links /= 2;
	}
}

int stack_copy_learn(struct stack_copy *stack, struct remote_memory *memory,
		     const struct py_offsets *offsets, bool grew)
{
	stack->nr_steps = 0;
	stack->wants_header = false;
	if (stack->tick >= stack->epoch_tick + WINDOW_EPOCH_TICKS)
		stack->epoch_tick = stack->tick;
	for (size_t i = stack->first_chunk; i < stack->nr_chunks; i++)
		learn_window(stack, offsets, &stack->chunks[i], grew && i == stack->ended_chunk);
	drop_links(stack, offsets);
	if (offsets->frame.lasti != OFFSET_ABSENT)
		stack_copy_sort_frames(stack);
	return chunk_chain_learn(stack, memory, offsets);
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

	if (stack->nr_links == MAX_LINKS || !copy_budget_take(stack->budget, PIECE_COST_BYTES))
		return -E2BIG;
	if (stack->nr_links == stack->max_links && !grow_links(stack)) {
		copy_budget_give(stack->budget, PIECE_COST_BYTES);
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

/*
 * What drives the generator that was added last, if that is not copied yet: neither a frame of the
 * data stack nor a link. 0: it is, or the link is no generator that runs.
 */
static remote_addr find_new_driver(struct stack_copy *stack, const struct py_offsets *offsets)
{
	const struct link_copy *link = &stack->links[stack->nr_links - 1];
	remote_addr addr;

	if (!link_is_generator(link, offsets))
		return 0;
	addr = field_u64(link->bytes, offsets->frame.previous);
	if (!addr || stack_copy_holds(stack, addr) || stack_copy_find_link(stack, addr))
		return 0;
	return addr;
}

/* Forget the link that was added last if it is no generator's. */
static bool keep_generator(struct stack_copy *stack, const struct py_offsets *offsets)
{
	if (link_is_generator(&stack->links[stack->nr_links - 1], offsets))
		return true;
	stack->nr_links--;
	copy_budget_give(stack->budget, PIECE_COST_BYTES);
	return false;
}

int stack_copy_add_links(struct stack_copy *stack, struct remote_memory *memory,
			 const struct py_offsets *offsets, remote_addr addr, int max_links,
			 int *ret_nr_added)
{
	int nr_added = 0;
	int err;

	do {
		err = stack_copy_add_link(stack, memory, offsets, addr);
		if (err || (nr_added && !keep_generator(stack, offsets)))
			break;
		nr_added++;
		addr = find_new_driver(stack, offsets);
	} while (addr && nr_added < max_links);
	*ret_nr_added = nr_added;
	return err;
}
