/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot_pieces.h"

#include <errno.h>

#include "sampler/python/chunk_chain.h"
#include "sampler/python/chunk_order.h"
#include "sampler/python/link_copy.h"

static bool has_cframe(const struct snapshot *snapshot)
{
	return snapshot->build->offsets.cframe.current_frame != OFFSET_ABSENT;
}

/* The data-stack frame that a frame of an extension was linked to, or 0. */
static remote_addr foreign_caller(struct stack_copy *stack, const struct link_copy *link,
				  const struct py_offsets *offsets)
{
	remote_addr addr = field_u64(link->bytes, offsets->frame.previous);

	return stack_copy_holds(stack, addr) ? addr : 0;
}

/* The data-stack frame that runs a generator, so far as is known, or 0. */
static remote_addr generator_caller(struct stack_copy *stack, const struct link_copy *link,
				    const struct py_offsets *offsets)
{
	remote_addr addr = link->driver_addr;
	const struct link_copy *shim;

	if (!addr || stack->nr_steps > MAX_WALK_STEPS)
		return 0;
	shim = link->reused ? stack_copy_find_link(stack, addr) : NULL;
	if (shim && shim->valid && !link_is_generator(shim, offsets))
		addr = field_u64(shim->bytes, offsets->frame.previous);
	return stack_copy_holds(stack, addr) ? addr : 0;
}

/* The executable of the data-stack frame that called a link when it was copied last. */
static void add_below(struct snapshot *snapshot, struct stack_copy *stack, struct link_copy *link)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	link->below_addr = link->foreign ? foreign_caller(stack, link, offsets)
					 : generator_caller(stack, link, offsets);
	if (link->below_addr)
		snapshot_add_range(snapshot, link->below_addr + offsets->frame.executable,
				   &link->below_executable, sizeof(link->below_executable));
}

/* A generator, or frame of an extension, once more, and who called it. */
static void add_again(struct snapshot *snapshot, struct stack_copy *stack, struct link_copy *link)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	snapshot_add_range(snapshot, link->addr, link->again,
			   offsets->frame.previous + sizeof(uint64_t));
	link->above_addr = link->foreign && stack_copy_holds(stack, link->next_above_addr)
				   ? link->next_above_addr
				   : 0;
	if (link->above_addr)
		snapshot_add_range(snapshot, link->above_addr + offsets->frame.executable,
				   &link->above_executable, sizeof(link->above_executable));
	if (!link->foreign)
		add_below(snapshot, stack, link);
}

/* Whether the header of a chunk is copied where its begin is not. */
static bool has_header(const struct stack_copy *stack, size_t i)
{
	return i + 1 < stack->nr_chunks || stack->wants_header;
}

/* The window of a chunk, what lies behind a page border first. */
static void add_window(struct snapshot *snapshot, const struct chunk_copy *chunk,
		       size_t window_bytes)
{
	size_t end_bytes = window_bytes;

	if (chunk->border_bytes) {
		end_bytes = chunk->border_bytes;
		snapshot_add_range(snapshot, chunk->addr + end_bytes, chunk->bytes + end_bytes,
				   window_bytes - end_bytes);
	}
	snapshot_add_range(snapshot, chunk->addr + chunk->from_bytes,
			   chunk->bytes + chunk->from_bytes, end_bytes - chunk->from_bytes);
}

/*
 * Where a chunk that was popped is not mapped, those that lay above it are not either: a piece
 * that cannot be read takes those behind it with it, from the one at index first on.
 */
static void bind_pieces(struct snapshot *snapshot, size_t first)
{
	for (size_t i = first; i < snapshot->nr_ranges; i++)
		snapshot->ranges[i].nr_with_it = snapshot->nr_ranges - i - 1;
}

/* The windows of the chunks. A thread for which there is no room loses them, and begins anew. */
static int add_chunk_ranges(struct snapshot *snapshot, struct stack_copy *stack)
{
	const size_t nr_ranges = snapshot->nr_ranges;
	const size_t newest = chunk_chain_find(stack, stack->newest_chunk_addr);
	size_t first_spare = SIZE_MAX;
	size_t from_bytes;

	stack_copy_choose_start(stack, &from_bytes);
	for (size_t i = stack->first_chunk; i < stack->nr_chunks; i++) {
		struct chunk_copy *chunk = &stack->chunks[i];
		size_t window_bytes;
		int err = chunk_copy_begin(stack, chunk, i == stack->first_chunk ? from_bytes : 0,
					   &window_bytes);

		if (i == newest + 1)
			first_spare = snapshot->nr_ranges;
		if (err == -E2BIG) {
			chunk_chain_drop(stack, 0);
			stack->first_chunk = 0;
			snapshot->nr_ranges = nr_ranges;
			return 0;
		}
		if (err)
			return err;
		/* Where a newer chunk may be, its begin is told by the header of this one. */
		if (chunk->from_bytes && has_header(stack, i))
			snapshot_add_range(snapshot, chunk->addr, chunk->bytes,
					   snapshot->build->offsets.chunk.data);
		chunk->border_bytes = page_border_choose(stack, chunk, window_bytes);
		add_window(snapshot, chunk, window_bytes);
		chunk->below_valid = chunk_comes_and_goes(stack, chunk) && chunk->below_addr;
		if (chunk->below_valid)
			snapshot_add_range(
				snapshot,
				chunk->below_addr + snapshot->build->offsets.frame.executable,
				&chunk->below_executable, sizeof(chunk->below_executable));
	}
	if (!stack->reads_spares)
		bind_pieces(snapshot, first_spare);
	return 0;
}

static void add_link_ranges(struct snapshot *snapshot, struct stack_copy *stack)
{
	for (size_t i = 0; i < stack->nr_links; i++) {
		struct link_copy *link = &stack->links[stack->link_order[i]];

		snapshot_add_range(snapshot, link->addr, link->bytes,
				   frame_head_bytes(&snapshot->build->offsets));
	}
}

/*
 * The frames of extensions once more behind the thread state, which alone tells that the current
 * one is linked, and who called them. What they leave stays where the next one is made: where the
 * read stood still for some microseconds, two copies were equal between which others had been there.
 */
static void add_foreign_last(struct snapshot *snapshot, struct stack_copy *stack)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	for (size_t i = 0; i < stack->nr_links; i++) {
		struct link_copy *link = &stack->links[i];

		if (!link->foreign)
			continue;
		snapshot_add_range(snapshot, link->addr, link->last,
				   offsets->frame.previous + sizeof(uint64_t));
		add_below(snapshot, stack, link);
	}
}

static void add_state_range(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	snapshot_add_range(snapshot, thread->ref.addr, thread->state,
			   thread_head_bytes(&snapshot->build->offsets));
}

/*
 * Frames that are objects: the thread state, which says which is the innermost, between
 * two copies of those that may change, the outermost first and then last.
 */
static void add_heap_ranges(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	struct stack_copy *stack = &thread->stack;

	for (size_t i = stack->nr_links; i > 0; i--) {
		struct link_copy *link = &stack->links[stack->link_order[i - 1]];

		if (link->twice)
			snapshot_add_range(snapshot, link->addr, link->again,
					   frame_head_bytes(&snapshot->build->offsets));
	}
	add_state_range(snapshot, thread);
	add_link_ranges(snapshot, stack);
}

size_t snapshot_max_pieces(const struct snapshot_thread *thread)
{
	return 4 + 2 * thread->stack.nr_chunks + 5 * thread->stack.nr_links;
}

int snapshot_add_thread(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	struct stack_copy *stack = &thread->stack;
	int err;

	if (snapshot->build->traits.frames_on_heap) {
		add_heap_ranges(snapshot, thread);
		return 0;
	}
	add_link_ranges(snapshot, stack);
	err = add_chunk_ranges(snapshot, stack);
	if (err)
		return err;
	for (size_t i = 0; i < stack->nr_links; i++) {
		struct link_copy *link = &stack->links[i];

		if (link->twice)
			add_again(snapshot, stack, link);
	}
	if (has_cframe(snapshot))
		snapshot_add_range(snapshot, thread->cframe_addr, thread->cframe,
				   sizeof(thread->cframe));
	add_state_range(snapshot, thread);
	add_foreign_last(snapshot, stack);
	return 0;
}

/* Whether the thread state that was copied is the thread's still. */
static bool state_is_own(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	return field_u64(thread->state, offsets->thread.interp) ==
		       snapshot->interpreters[thread->ref.interpreter].ref.addr &&
	       thread_ref_matches(&thread->ref, offsets, thread->state);
}

/* Decode what add_heap_ranges() has put before the thread state. */
static void decode_frames_before(struct stack_copy *stack, const struct remote_range **range)
{
	for (size_t i = stack->nr_links; i > 0; i--) {
		struct link_copy *link = &stack->links[stack->link_order[i - 1]];

		link->again_valid = link->twice && range_complete((*range)++);
	}
}

/* Decode a chunk, as add_chunk_ranges() has put it; own_header: its header was asked for. */
static void decode_chunk(struct chunk_copy *chunk, bool own_header,
			 const struct remote_range **range)
{
	const struct remote_range *behind;
	size_t read_bytes;

	if (chunk->from_bytes && own_header)
		chunk->has_header = range_complete((*range)++);
	behind = chunk->border_bytes ? (*range)++ : NULL;
	read_bytes = (*range)->done_bytes;
	if (behind && range_complete(*range))
		read_bytes += behind->done_bytes;
	(*range)++;
	chunk->done_bytes = read_bytes ? chunk->from_bytes + read_bytes : 0;
	if (chunk->below_valid)
		chunk->below_valid = range_complete((*range)++);
}

/* Decode the links and chunks of a thread, as add_thread_ranges() has put them. */
static void decode_stack(struct snapshot *snapshot, struct stack_copy *stack,
			 const struct remote_range **range)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	for (size_t i = 0; i < stack->nr_links; i++)
		stack->links[stack->link_order[i]].valid = range_complete((*range)++);
	if (snapshot->build->traits.frames_on_heap)
		return;
	for (size_t i = stack->first_chunk; i < stack->nr_chunks; i++)
		decode_chunk(&stack->chunks[i], has_header(stack, i), range);
	chunk_order_renew(stack, offsets);
	for (size_t i = 0; i < stack->nr_links; i++) {
		struct link_copy *link = &stack->links[i];

		link->again_valid = link->twice && range_complete((*range)++);
		link->above_valid = link->twice && link->above_addr && range_complete((*range)++);
		link->below_valid = link->twice && !link->foreign && link->below_addr &&
				    range_complete((*range)++);
		link->last_valid = false;
		link->twice = link->foreign || link_is_generator(link, offsets);
		link_learn(link, offsets, stack->tick);
	}
}

/* Decode what add_foreign_last() has put behind the thread state. */
static void decode_foreign_last(struct stack_copy *stack, const struct remote_range **range)
{
	for (size_t i = 0; i < stack->nr_links; i++) {
		struct link_copy *link = &stack->links[i];

		if (!link->foreign)
			continue;
		link->last_valid = range_complete((*range)++);
		link->below_valid = link->below_addr && range_complete((*range)++);
	}
}

/* Take over what the thread state says of the stack. */
static void decode_state(struct snapshot *snapshot, struct snapshot_thread *thread,
			 bool cframe_read)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct stack_copy *stack = &thread->stack;
	const uint8_t *state = thread->state;

	if (field_u64(state, offsets->thread.next) != thread->ref.next_addr)
		snapshot->stale = true;
	if (!snapshot->build->traits.frames_on_heap) {
		stack->newest_chunk_addr = field_u64(state, offsets->thread.datastack_chunk);
		stack->datastack_top_addr = field_u64(state, offsets->thread.datastack_top);
	}
	stack->base_frame_addr = offsets->thread.base_frame == OFFSET_ABSENT
					 ? 0
					 : field_u64(state, offsets->thread.base_frame);
	if (!has_cframe(snapshot)) {
		stack->current_frame_addr = field_u64(state, offsets->thread.current_frame);
		return;
	}
	stack->current_frame_addr = 0;
	if (cframe_read && thread->cframe_addr == field_u64(state, offsets->thread.cframe))
		stack->current_frame_addr =
			field_u64(thread->cframe, offsets->cframe.current_frame);
	thread->cframe_addr = field_u64(state, offsets->thread.cframe);
}

/* Decode one thread from its ranges, the first of which is *range. */
void snapshot_decode_thread(struct snapshot *snapshot, struct snapshot_thread *thread,
			    const struct remote_range **range)
{
	bool on_heap = snapshot->build->traits.frames_on_heap;
	struct stack_copy *stack = &thread->stack;
	bool cframe_read = false;
	bool state_read = false;

	if (on_heap) {
		decode_frames_before(stack, range);
		state_read = range_complete((*range)++);
	}
	decode_stack(snapshot, stack, range);
	if (has_cframe(snapshot))
		cframe_read = range_complete((*range)++);
	if (!on_heap) {
		state_read = range_complete((*range)++);
		decode_foreign_last(stack, range);
	}
	stack->before_tick = stack->tick;
	stack->tick = snapshot->tick;
	thread->copied = state_read && state_is_own(snapshot, thread);
	if (thread->copied)
		decode_state(snapshot, thread, cframe_read);
	else
		snapshot->stale = true;
}
