/* SPDX-License-Identifier: MIT */
#include "sampler/frame_cache.h"

#include <errno.h>

/*
 * So much less to copy is worth an anchor. Below that the copies that are taken whole, when
 * the anchor moves, take back what the others save.
 */
enum { LEAST_LEFT_OUT_BYTES = 4096 };

/* So much of the anchored frame's callers is copied: one of them may take its place. */
enum { SLACK_BYTES = 1024 };

/*
 * How many ticks are watched before a write. An anchor that was popped within LEAST_HELD
 * ticks doubles that: each time a thread is copied again it is seen a moment later, always
 * behind the same event, and that must stay rare.
 */
enum { LEAST_PATIENCE = 64, MOST_PATIENCE = 8192, LEAST_HELD = 512 };

/* An anchor of somebody else that stands still so long was left behind. */
#define LEFT_BEHIND_NS 1000000000u

/* An anchor that lies lower than it could is moved no more often than that. */
#define MOVE_EVERY_NS 1000000000u

/* So many frames are looked at for one that can be the anchor. */
enum { MAX_CHOICES = 64 };

/* At the end of a run the target may move the anchor while it is taken away. */
enum { MAX_END_TRIES = 4 };

static void watch_anew(struct frame_cache *cache)
{
	cache->least_same = UINT32_MAX;
	cache->nr_watched = 0;
}

static void turn_off(struct frame_cache *cache, enum frame_cache_reason reason)
{
	cache->state = CACHE_OFF;
	cache->reason = reason;
}

bool frame_cache_has_words(const struct py_build *build)
{
	return !build->newer_than_tested &&
	       build->offsets.thread.last_profiled_frame != OFFSET_ABSENT &&
	       build->offsets.thread.last_profiled_frame_seq != OFFSET_ABSENT;
}

void frame_cache_init(struct frame_cache *cache, struct remote_memory *memory,
		      const struct py_build *build, remote_addr runtime_addr,
		      const struct code_cache *codes)
{
	*cache = (struct frame_cache){
		.memory = memory,
		.build = build,
		.codes = codes,
		.runtime_addr = runtime_addr,
		.state = CACHE_WATCHING,
		.patience = LEAST_PATIENCE,
	};
	watch_anew(cache);
	if (!frame_cache_has_words(build))
		turn_off(cache, CACHE_NO_WORD);
	else if (!remote_memory_is_writable(memory))
		turn_off(cache, CACHE_READ_ONLY);
}

void frame_cache_add_thread(struct frame_cache *cache, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	remote_addr offset = thread->ref.addr - cache->runtime_addr;

	if (cache->state == CACHE_OFF || thread->ref.addr % sizeof(uint64_t) ||
	    offset >= offsets->runtime.size ||
	    offsets->runtime.size - offset < thread_head_bytes(offsets))
		return;
	/* There is one such thread state; it may be used for another thread by now. */
	cache->thread_addr = thread->ref.addr;
	cache->slot = thread->slot;
	cache->state = CACHE_WATCHING;
	cache->looked = false;
	watch_anew(cache);
}

/* The anchored frame is gone, or was never there: all is copied again from now on. */
static void let_go(struct frame_cache *cache)
{
	if (cache->nr_held >= LEAST_HELD)
		cache->patience = LEAST_PATIENCE;
	else if (cache->patience < MOST_PATIENCE)
		cache->patience *= 2;
	cache->state = CACHE_WATCHING;
	watch_anew(cache);
}

/*
 * Whether the anchored frame, popped, and so many less one of its callers after it have left
 * the anchor there: at a caller, or at what lies between two of them.
 */
static bool is_caller(const struct frame_cache *cache, const struct frame_list *list,
		      remote_addr addr, uint64_t nr_popped)
{
	bool plain = true;

	for (uint32_t i = cache->index; i > 0; i--) {
		plain = plain && list->frames[i].previous == list->frames[i - 1].addr;
		if (list->frames[i - 1].addr == addr)
			return !plain || nr_popped == cache->index - i + 1;
		if (list->frames[i].previous == addr)
			return true;
	}
	return list->frames[0].previous == addr;
}

/* Whether a frame of the list hangs directly on another one and lies where all was copied. */
static bool can_follow(const struct stack_copy *stack, const struct frame_list *list, uint32_t i)
{
	const struct walked_frame *frame = &list->frames[i];

	return i > 0 && frame->previous == list->frames[i - 1].addr &&
	       frame->addr >= stack->from_addr && frame->addr - stack->from_addr <= SLACK_BYTES;
}

/* The anchored frame was popped: a caller of it that was copied takes its place, if it can. */
static void follow(struct frame_cache *cache, const struct stack_copy *stack,
		   const struct frame_list *list, remote_addr addr, uint64_t seq)
{
	uint64_t nr_popped = seq - cache->last_seq;

	if (!is_caller(cache, list, addr, nr_popped)) {
		turn_off(cache, CACHE_SHARED);
		return;
	}
	if (nr_popped > cache->index || list->frames[cache->index - nr_popped].addr != addr ||
	    !can_follow(stack, list, cache->index - (uint32_t)nr_popped)) {
		let_go(cache);
		return;
	}
	cache->index -= (uint32_t)nr_popped;
}

/* Judge the two words that were copied with the thread state, behind its frames. */
static void look(struct frame_cache *cache, const struct snapshot_thread *thread,
		 const struct frame_list *list)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	remote_addr addr = field_u64(thread->state, offsets->thread.last_profiled_frame);
	uint64_t seq = field_u64(thread->state, offsets->thread.last_profiled_frame_seq);
	bool moved = !cache->looked || addr != cache->last_addr || seq != cache->last_seq;

	if (!moved)
		return;
	cache->quiet_ns = 0;
	if (cache->looked && seq == cache->last_seq)
		turn_off(cache, CACHE_SHARED);
	else if (cache->state == CACHE_HELD)
		follow(cache, &thread->stack, list, addr, seq);
	else if (cache->state != CACHE_WATCHING)
		let_go(cache);
	cache->looked = true;
	cache->last_addr = addr;
	cache->last_seq = seq;
}

/* Whether the newest chunk is one that was copied: else the thread has gone to other memory. */
static bool newest_is_copied(const struct stack_copy *stack)
{
	size_t i = stack->nr_chunks;

	while (i > stack->first_chunk && stack->chunks[i - 1].addr != stack->newest_chunk_addr)
		i--;
	return i > stack->first_chunk;
}

/* Whether the anchored frame was copied, and is the one that it was. */
static bool shows_anchor(const struct frame_cache *cache, struct stack_copy *stack,
			 const struct frame_list *list)
{
	const struct py_offsets *offsets = &cache->build->offsets;
	const struct walked_frame *frame = &list->frames[cache->index];
	const struct chunk_copy *chunk = stack_copy_chunk_of(stack, frame->addr);
	size_t offset;

	if (!chunk || !newest_is_copied(stack))
		return false;
	offset = frame->addr - chunk->addr;
	/* The tags of a reference are no part of it. */
	return chunk_copy_has(stack, chunk, offset, offsets->frame.localsplus) &&
	       (field_u64(chunk->bytes + offset, offsets->frame.executable) & ~(uint64_t)3) ==
		       frame->executable &&
	       field_u64(chunk->bytes + offset, offsets->frame.previous) == frame->previous;
}

/* Whether the entries of the code of the frames below say what they said. */
static bool codes_stand(struct frame_cache *cache, const struct frame_list *list)
{
	if (cache->nr_cleared == cache->codes->nr_cleared)
		return true;
	for (uint32_t i = 0; i < cache->index; i++)
		if (list->frames[i].code_nr_loads != list->frames[i].code->nr_loads)
			return false;
	cache->nr_cleared = cache->codes->nr_cleared;
	return true;
}

/* Whether it is the thread that index is meant of. A damaged list may have its state twice. */
static bool is_its_thread(const struct frame_cache *cache, const struct snapshot_thread *thread)
{
	return thread->ref.addr == cache->thread_addr && thread->slot == cache->slot;
}

bool frame_cache_proves(struct frame_cache *cache, struct snapshot_thread *thread,
			const struct frame_list *list)
{
	struct stack_copy *stack = &thread->stack;
	bool its_thread = is_its_thread(cache, thread);
	bool held;

	stack->nr_kept = 0;
	if (cache->state != CACHE_OFF && its_thread)
		look(cache, thread, list);
	held = cache->state == CACHE_HELD && its_thread;
	if (!held)
		stack->from_addr = 0;
	if (!stack_copy_is_partial(stack))
		return true;
	if (held && shows_anchor(cache, stack, list) && codes_stand(cache, list)) {
		stack->nr_kept = cache->index;
		cache->nr_kept++;
		return true;
	}
	if (held)
		cache->state = CACHE_SEEN;
	stack->from_addr = 0;
	return false;
}

/* Whether a frame of the list can be the anchor: one of the data stack, on its caller. */
static bool can_be_anchor(struct stack_copy *stack, const struct frame_list *list, uint32_t i)
{
	const struct walked_frame *frame = &list->frames[i];

	return !frame->hidden && frame->jumped_by == NOT_JUMPED &&
	       frame->previous == list->frames[i - 1].addr && stack_copy_holds(stack, frame->addr);
}

/* The innermost frame that stayed the same and can be the anchor; 0: there is none. */
static uint32_t choose(const struct frame_cache *cache, struct stack_copy *stack,
		       const struct frame_list *list)
{
	uint32_t end = list->nr_frames ? list->nr_frames - 1 : 0; /* not the innermost of all */
	uint32_t i = cache->least_same < end ? cache->least_same : end;

	for (int n = 0; i > 1 && n < MAX_CHOICES; n++)
		if (can_be_anchor(stack, list, --i))
			return i;
	return 0;
}

/* So much of the data stack lies below addr; 0 if it is no address of it. */
static size_t bytes_below(const struct stack_copy *stack, remote_addr addr)
{
	size_t sum = 0;

	for (size_t i = 0; i < stack->nr_chunks; i++) {
		const struct chunk_copy *chunk = &stack->chunks[i];

		if (addr - chunk->addr < chunk->size_bytes)
			return sum + (addr - chunk->addr);
		sum += chunk->high_bytes[0] > chunk->high_bytes[1] ? chunk->high_bytes[0]
								   : chunk->high_bytes[1];
	}
	return 0;
}

/* Leave out of the next copies what lies below the anchored frame and some of its callers. */
static void hold(struct frame_cache *cache, struct stack_copy *stack, const struct frame_list *list)
{
	const remote_addr addr = list->frames[cache->index].addr;
	const struct chunk_copy *chunk = stack_copy_chunk_of(stack, addr);
	uint32_t i = cache->index;

	while (chunk && i > 1 && list->frames[i].previous == list->frames[i - 1].addr &&
	       list->frames[i - 1].addr - chunk->addr < chunk->size_bytes &&
	       addr - list->frames[i - 1].addr <= SLACK_BYTES)
		i--;
	stack->from_addr = list->frames[i].addr;
	cache->nr_cleared = cache->codes->nr_cleared;
	cache->nr_held = 0;
	cache->state = CACHE_HELD;
	watch_anew(cache);
	/* Generators below need not be copied either. */
	for (i = 0; i < cache->index; i++) {
		remote_addr frame_addr = list->frames[i].addr;
		struct link_copy *link;

		if (chunk && frame_addr - chunk->addr < chunk->size_bytes)
			continue;
		chunk = stack_copy_chunk_of(stack, frame_addr);
		link = chunk ? NULL : stack_copy_find_link(stack, frame_addr);
		if (link)
			link->valid = false;
	}
}

/* Whether the anchored frame is live in the list; where. */
static bool find_anchor(struct frame_cache *cache, struct stack_copy *stack,
			const struct frame_list *list)
{
	uint32_t nr = frame_list_find(list, cache->last_addr, list->nr_frames);

	if (nr < 2 || !can_be_anchor(stack, list, nr - 1))
		return false;
	cache->index = nr - 1;
	return true;
}

/* Whether the anchor may be replaced, and that is worth it. */
static bool may_move(const struct frame_cache *cache, const struct stack_copy *stack,
		     remote_addr addr, uint64_t now_ns)
{
	size_t left_out = bytes_below(stack, addr);

	if (cache->state == CACHE_HELD)
		return now_ns - cache->written_ns >= MOVE_EVERY_NS &&
		       left_out >= bytes_below(stack, stack->from_addr) + LEAST_LEFT_OUT_BYTES;
	return left_out >= LEAST_LEFT_OUT_BYTES &&
	       (cache->owned || !cache->last_addr || now_ns - cache->quiet_ns >= LEFT_BEHIND_NS);
}

static int write_word(struct frame_cache *cache, remote_addr addr)
{
	int err = remote_memory_write_u64(
		cache->memory,
		cache->thread_addr + cache->build->offsets.thread.last_profiled_frame, addr);

	cache->nr_writes += !err;
	return err;
}

static void write_anchor(struct frame_cache *cache, struct stack_copy *stack, remote_addr addr,
			 uint64_t now_ns)
{
	int err = write_word(cache, addr);

	stack->from_addr = 0;
	if (err == -ESRCH) { /* the next tick tells why */
		cache->state = CACHE_WATCHING;
		return;
	}
	if (err) {
		turn_off(cache, CACHE_REFUSED);
		return;
	}
	cache->last_addr = addr;
	cache->written_ns = now_ns;
	cache->owned = true;
	cache->nr_held = 0;
	cache->state = CACHE_WRITTEN;
}

/* One more walk that found the thread's frames in list. */
static void watch(struct frame_cache *cache, const struct frame_list *list)
{
	cache->nr_held++;
	cache->nr_watched++;
	if (cache->least_same > list->nr_unchanged)
		cache->least_same = list->nr_unchanged;
}

void frame_cache_watch(struct frame_cache *cache, const struct snapshot_thread *thread,
		       const struct frame_list *list)
{
	if (cache->state != CACHE_OFF && is_its_thread(cache, thread))
		watch(cache, list);
}

void frame_cache_learn(struct frame_cache *cache, struct snapshot_thread *thread,
		       const struct frame_list *list, bool walked, uint64_t now_ns)
{
	struct stack_copy *stack = &thread->stack;
	uint32_t i;

	if (cache->state == CACHE_OFF || !is_its_thread(cache, thread))
		return;
	if (!cache->quiet_ns)
		cache->quiet_ns = now_ns;
	if (!walked)
		return;
	if (cache->state == CACHE_WRITTEN || cache->state == CACHE_SEEN) {
		if (!find_anchor(cache, stack, list))
			let_go(cache);
		else if (cache->state == CACHE_WRITTEN)
			cache->state = CACHE_SEEN;
		else if (!list->has_dying)
			hold(cache, stack, list);
		return;
	}
	watch(cache, list);
	if (cache->nr_watched < cache->patience)
		return;
	i = choose(cache, stack, list);
	if (i && may_move(cache, stack, list->frames[i].addr, now_ns))
		write_anchor(cache, stack, list->frames[i].addr, now_ns);
	watch_anew(cache);
}

void frame_cache_end(struct frame_cache *cache)
{
	const struct py_offsets *offsets = &cache->build->offsets;

	for (int i = 0; i < MAX_END_TRIES && cache->owned && cache->state != CACHE_OFF; i++) {
		uint64_t addr, seq;

		if (remote_memory_read_u64(
			    cache->memory,
			    cache->thread_addr + offsets->thread.last_profiled_frame_seq, &seq) ||
		    remote_memory_read_u64(cache->memory,
					   cache->thread_addr + offsets->thread.last_profiled_frame,
					   &addr))
			return;
		if (!addr || (seq == cache->last_seq && addr != cache->last_addr) ||
		    write_word(cache, 0))
			return;
		cache->last_addr = 0;
		cache->last_seq = seq;
	}
}
