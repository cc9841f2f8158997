/* SPDX-License-Identifier: MIT */
#include "sampler/held_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/dormancy.h"
#include "sampler/snapshot_pieces.h"
#include "sampler/ticker.h"

/*
 * After one that could not be proven so many full ticks follow. Up to MAX_HELD_COPIES stacks are
 * lost with it, and as many before it may have been wrong, a third of a percent; where it happens
 * again within as many full ticks it is twice as many, up to a second or so.
 */
enum { OFF_LEAST_TICKS = 2048, OFF_MOST_TICKS = 1 << 18 };

/* Larger windows take far longer to copy than what is saved. */
enum { HELD_MAX_BYTES = 64 << 10 };

static struct chunk_copy *copied_chunk(const struct held_copies *held)
{
	struct stack_copy *stack = &held->thread->stack;
	struct chunk_copy *chunk = &stack->chunks[stack->first_chunk];

	return stack->first_chunk + 1 == stack->nr_chunks && chunk->addr == held->chunk_addr ? chunk
											     : NULL;
}

void held_copies_done(struct held_copies *held, struct snapshot *snapshot)
{
	held_copies_drop(held);
	for (size_t i = 0; i < MAX_HELD_COPIES; i++) {
		snapshot->budget.used_bytes -= held->copies[i].bytes.max_bytes;
		free(held->copies[i].bytes.bytes);
	}
	*held = (struct held_copies){0};
}

/* Whether code objects of any interpreter come and go. */
static bool is_churning(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (snapshot_is_churning(snapshot, &snapshot->interpreters[i]))
			return true;
	return false;
}

/* Whether the last copy and walk of a stack were of the plainest kind. */
static bool is_plain(const struct stack_copy *stack, const struct frame_list *list)
{
	const struct chunk_copy *chunk;

	if (stack->nr_links || stack->first_chunk + 1 != stack->nr_chunks ||
	    list->walked.tick != stack->tick || list->has_foreign)
		return false;
	chunk = &stack->chunks[stack->first_chunk];
	return chunk->addr == stack->newest_chunk_addr && chunk->done_bytes &&
	       chunk->done_bytes <= HELD_MAX_BYTES;
}

struct snapshot_thread *held_copies_candidate(const struct held_copies *held,
					      const struct snapshot *snapshot)
{
	const struct py_build *build = snapshot->build;

	if (snapshot->stale || build->free_threaded || build->traits.frames_on_heap ||
	    snapshot->nr_takes < held->off_take)
		return NULL;
	return dormancy_lone(snapshot);
}

void held_copies_choose(struct held_copies *held, struct snapshot_thread *thread,
			const struct snapshot *snapshot, const struct frame_list *list,
			uint64_t now_ns)
{
	struct stack_copy *stack = &thread->stack;

	if (snapshot_is_collecting(snapshot)) {
		held_copies_turn_off(held, snapshot);
		return;
	}
	stack->wants_header = !is_churning(snapshot) && thread->copied && is_plain(stack, list);
	if (!stack->wants_header || !stack->chunks[stack->first_chunk].has_header)
		return;
	held->thread = thread;
	held->chunk_addr = thread->stack.newest_chunk_addr;
	held->header_bytes = snapshot->build->offsets.chunk.data;
	held->clock = thread->clock;
	held->proven_ns = now_ns;
}

/* Have room for so many bytes. 0, -E2BIG, -ENOMEM. */
static int make_room(struct held_bytes *bytes, struct copy_budget *budget, size_t want)
{
	size_t more = want > bytes->max_bytes ? want - bytes->max_bytes : 0;
	uint8_t *room;

	if (!more)
		return 0;
	if (budget->used_bytes > budget->max_bytes || more > budget->max_bytes - budget->used_bytes)
		return -E2BIG;
	room = realloc(bytes->bytes, want);
	if (!room)
		return -ENOMEM;
	budget->used_bytes += more;
	bytes->bytes = room;
	bytes->max_bytes = want;
	return 0;
}

/*
 * Take what tells the end of the stack out of the thread state. The current frame is left out:
 * while C is entered it is none of the chunk for a moment, and no generator.
 */
static struct held_top decode_top(const struct py_offsets *offsets, const uint8_t *state)
{
	return (struct held_top){
		.newest_chunk_addr = field_u64(state, offsets->thread.datastack_chunk),
		.datastack_top_addr = field_u64(state, offsets->thread.datastack_top),
	};
}

/* What lies in [from_bytes, end_bytes) of the chunk, into its copy. */
static struct remote_range piece(const struct chunk_copy *chunk, const struct held_bytes *bytes,
				 size_t from_bytes, size_t end_bytes)
{
	return (struct remote_range){
		.addr = chunk->addr + from_bytes,
		.buffer = bytes->bytes + from_bytes,
		.size = end_bytes - from_bytes,
	};
}

int held_copies_add(struct held_copies *held, struct snapshot *snapshot, uint64_t now_ns)
{
	const struct py_build *build = snapshot->build;
	const struct chunk_copy *chunk = copied_chunk(held);
	struct held_copy *copy = &held->copies[held->nr];
	const bool with_state = build->traits.leaf_rule == LEAF_BY_STACKTOP;
	/* What was not copied at the full tick is not here either. */
	const size_t border_bytes =
		chunk && chunk->border_bytes < chunk->done_bytes ? chunk->border_bytes : 0;
	struct remote_range ranges[3];
	size_t nr = 0, nr_done = 0;
	int err = chunk ? make_room(&copy->bytes, &snapshot->budget, chunk->done_bytes) : -E2BIG;

	if (err)
		return err;
	copy->bytes.border_bytes = border_bytes;
	if (border_bytes)
		ranges[nr++] = piece(chunk, &copy->bytes, border_bytes, chunk->done_bytes);
	ranges[nr++] = piece(chunk, &copy->bytes, chunk->from_bytes,
			     border_bytes ? border_bytes : chunk->done_bytes);
	if (with_state)
		ranges[nr++] = (struct remote_range){
			.addr = held->thread->ref.addr,
			.buffer = held->state,
			.size = thread_head_bytes(&build->offsets),
		};
	err = remote_memory_read_ranges(snapshot->memory, ranges, nr);
	if (err)
		return err;
	while (nr_done < nr && range_complete(&ranges[nr_done]))
		nr_done++;
	copy->time_ns = now_ns;
	copy->bytes.from_bytes = chunk->from_bytes;
	copy->bytes.done_bytes = nr_done == nr ? chunk->done_bytes : 0;
	copy->top = with_state ? decode_top(&build->offsets, held->state) : (struct held_top){0};
	copy->copy_ns = clock_now_ns() - now_ns;
	held->nr++;
	return 0;
}

/* The copy that the chunk has becomes other's, which is given back. */
static struct held_bytes replace(struct chunk_copy *chunk, struct held_bytes other)
{
	struct held_bytes old = {chunk->bytes, chunk->from_bytes, chunk->done_bytes,
				 chunk->max_bytes, chunk->border_bytes};

	chunk->border_bytes = other.border_bytes;
	chunk->bytes = other.bytes;
	chunk->from_bytes = other.from_bytes;
	chunk->done_bytes = other.done_bytes;
	chunk->max_bytes = other.max_bytes;
	return old;
}

/* The same with the copy before. */
static struct held_bytes replace_before(struct chunk_copy *chunk, struct held_bytes other)
{
	struct held_bytes old = {chunk->before, chunk->before_from_bytes, chunk->before_bytes,
				 chunk->before_max_bytes, 0};

	chunk->before = other.bytes;
	chunk->before_from_bytes = other.from_bytes;
	chunk->before_bytes = other.done_bytes;
	chunk->before_max_bytes = other.max_bytes;
	return old;
}

/* Have what is shown be the copy before, and next be shown. */
static void show(struct held_copies *held, struct chunk_copy *chunk, struct held_bytes next)
{
	struct held_bytes shown = replace(chunk, next);

	if (!held->nr_shown) {
		held->last = shown;
		return;
	}
	held->copies[held->nr_shown - 1].bytes = replace_before(chunk, shown);
	held->thread->stack.before_tick = held->thread->stack.tick;
}

/*
 * Whether no newer chunk was begun elsewhere between the two full ticks, so far as the header
 * tells which those that lack it get from the last one.
 */
static bool header_stands(const struct held_copies *held, const struct chunk_copy *chunk)
{
	return !held->copies[0].bytes.from_bytes ||
	       (chunk->has_header && memcmp(chunk->before, chunk->bytes, held->header_bytes) == 0);
}

bool held_copies_show_next(struct held_copies *held, const struct held_copy **ret_copy)
{
	struct chunk_copy *chunk;
	struct held_copy *copy;

	if (held->nr_shown == held->nr)
		return false;
	chunk = copied_chunk(held);
	if (!chunk || (!held->nr_shown && !header_stands(held, chunk)))
		return false;
	copy = &held->copies[held->nr_shown];
	show(held, chunk, copy->bytes);
	if (chunk->from_bytes)
		memcpy(chunk->bytes, held->last.bytes, held->header_bytes);
	held->shown_in = chunk;
	held->nr_shown++;
	*ret_copy = copy;
	return true;
}

void held_copies_drop(struct held_copies *held)
{
	if (held->shown_in)
		show(held, held->shown_in, held->last);
	held->shown_in = NULL;
	held->nr_shown = 0;
	held->nr = 0;
	held->thread = NULL;
}

void held_copies_turn_off(struct held_copies *held, const struct snapshot *snapshot)
{
	const uint64_t now = snapshot->nr_takes;

	if (now < held->off_take)
		return; /* by another one of the same tick */
	if (now - held->off_take >= held->nr_off_ticks)
		held->nr_off_ticks = OFF_LEAST_TICKS;
	else if (held->nr_off_ticks < OFF_MOST_TICKS)
		held->nr_off_ticks *= 2;
	held->off_take = now + held->nr_off_ticks;
}
