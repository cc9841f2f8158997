/* SPDX-License-Identifier: MIT */
#include "sampler/frame_cache.h"

#include <errno.h>

#include "sampler/sample.h"

/* Minimum number of saved frames that justify an anchor, and a write. */
enum { MIN_KEPT = 64 };

/*
 * Number of looks to watch before a write. It doubles when an anchor was popped within
 * MIN_LIFE_LOOKS looks.
 */
enum { MIN_WATCH_LOOKS = 16, MAX_WATCH_LOOKS = 8192, MIN_LIFE_LOOKS = 64 };

/* An anchor of another profiler that has not changed for this many looks is abandoned. */
enum { ABANDONED_LOOKS = 1024 };

/* Number of frames to try as the anchor. */
enum { MAX_CHOICES = 64 };

/* At the end of a run the target may move the anchor while it is removed. */
enum { MAX_END_TRIES = 4 };

static void restart_watch(struct frame_cache *cache)
{
	cache->min_unchanged = UINT32_MAX;
	cache->nr_watched = 0;
}

bool frame_cache_has_words(const struct py_build *build)
{
	return !build->newer_than_tested &&
	       build->offsets.thread.last_profiled_frame != OFFSET_ABSENT &&
	       build->offsets.thread.last_profiled_frame_seq != OFFSET_ABSENT;
}

void frame_cache_init(struct frame_cache *cache, const struct code_cache *codes,
		      remote_addr runtime_addr, struct sampler_stats *stats)
{
	*cache = (struct frame_cache){
		.codes = codes,
		.runtime_addr = runtime_addr,
		.watch_looks = MIN_WATCH_LOOKS,
		.stats = stats,
	};
	restart_watch(cache);
	if (!frame_cache_has_words(codes->build))
		cache->reason = CACHE_NO_WORD;
	else if (!remote_memory_is_writable(codes->memory))
		cache->reason = CACHE_READ_ONLY;
}

void frame_cache_add_thread(struct frame_cache *cache, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &cache->codes->build->offsets;
	const remote_addr offset = thread->ref.addr - cache->runtime_addr;

	if (cache->reason != CACHE_USABLE || thread->ref.addr % sizeof(uint64_t) ||
	    offset >= offsets->runtime.size ||
	    offsets->runtime.size - offset < thread_head_bytes(offsets))
		return;
	/* There is one such thread state; it may be reused for another thread. */
	cache->thread_addr = thread->ref.addr;
	cache->slot = thread->slot;
	cache->is_current = false;
	cache->has_index = false;
	restart_watch(cache);
}

/* Whether index belongs to this thread. A damaged list may have its state twice. */
static bool is_its_thread(const struct frame_cache *cache, const struct snapshot_thread *thread)
{
	return cache->reason == CACHE_USABLE && thread->ref.addr == cache->thread_addr &&
	       thread->slot == cache->slot;
}

/* The anchored frame was popped: give up the anchor. */
static void drop_anchor(struct frame_cache *cache)
{
	if (cache->has_index && cache->nr_unchanged_looks < MIN_LIFE_LOOKS &&
	    cache->watch_looks < MAX_WATCH_LOOKS)
		cache->watch_looks *= 2;
	else if (cache->nr_unchanged_looks >= MIN_LIFE_LOOKS)
		cache->watch_looks = MIN_WATCH_LOOKS;
	cache->has_index = false;
	restart_watch(cache);
}

/*
 * The anchored frame and nr_popped - 1 of its callers were popped: the word names the next
 * caller.
 */
static void follow(struct frame_cache *cache, const struct frame_list *list, remote_addr addr,
		   uint64_t nr_popped)
{
	uint32_t i = cache->index;

	for (uint64_t n = 0; n < nr_popped; n++) {
		/* The list lacks an entry frame in between. */
		if (i < 1 || list->frames[i].previous != list->frames[i - 1].addr) {
			drop_anchor(cache);
			return;
		}
		i--;
	}
	if (i < MIN_KEPT || list->frames[i].addr != addr)
		drop_anchor(cache);
	else
		cache->index = i;
}

/* Evaluate the two words of this look. */
static void look(struct frame_cache *cache, const struct snapshot_thread *thread,
		 const struct frame_list *list)
{
	const struct py_offsets *offsets = &cache->codes->build->offsets;
	const remote_addr addr = field_u64(thread->state, offsets->thread.last_profiled_frame);
	const uint64_t seq = field_u64(thread->state, offsets->thread.last_profiled_frame_seq);

	if (cache->is_current && addr == cache->anchor_addr && seq == cache->seq) {
		cache->nr_unchanged_looks++;
		return;
	}
	if (cache->is_current && seq == cache->seq) {
		cache->reason = CACHE_SHARED;
		cache->has_index = false;
	} else if (cache->has_index) {
		follow(cache, list, addr, seq - cache->seq);
	}
	cache->is_current = true;
	cache->anchor_addr = addr;
	cache->seq = seq;
	cache->nr_unchanged_looks = 0;
}

/* Whether the code entries of the frames below the anchor are unchanged. */
static bool codes_are_unchanged(struct frame_cache *cache, const struct frame_list *list)
{
	if (cache->nr_cleared == cache->codes->nr_cleared)
		return true;
	for (uint32_t i = 0; i < cache->index; i++)
		if (list->frames[i].code_nr_loads != list->frames[i].code->nr_loads)
			return false;
	cache->nr_cleared = cache->codes->nr_cleared;
	return true;
}

struct kept_frames frame_cache_kept(struct frame_cache *cache, const struct snapshot_thread *thread,
				    const struct frame_list *list)
{
	const struct kept_frames none = {.anchor_addr = 0};

	if (!is_its_thread(cache, thread))
		return none;
	look(cache, thread, list);
	if (cache->has_index &&
	    (cache->index >= list->nr_frames || !codes_are_unchanged(cache, list)))
		cache->has_index = false;
	return cache->has_index
		       ? (struct kept_frames){.anchor_addr = cache->anchor_addr, .nr = cache->index}
		       : none;
}

/* The innermost frame before end that can be the anchor: a plain one, adjacent to its caller. */
static uint32_t choose_anchor(const struct frame_list *list, uint32_t end)
{
	uint32_t i = end;

	for (int n = 0; i > MIN_KEPT && n < MAX_CHOICES; n++) {
		const struct walked_frame *frame = &list->frames[--i];

		if (!frame->hidden && !frame->code->is_not_code &&
		    frame->previous == list->frames[i - 1].addr)
			return i;
	}
	return 0;
}

static int write_word(struct frame_cache *cache, remote_addr addr)
{
	int err = remote_memory_write_u64(
		cache->codes->memory,
		cache->thread_addr + cache->codes->build->offsets.thread.last_profiled_frame, addr);

	cache->stats->writes += !err;
	return err;
}

void frame_cache_update(struct frame_cache *cache, const struct snapshot_thread *thread,
			const struct frame_list *list, bool is_whole,
			const struct kept_frames *kept)
{
	uint32_t end, index;
	remote_addr addr;
	int err;

	if (!is_its_thread(cache, thread))
		return;
	if (!is_whole || (cache->has_index && !kept->anchor_addr))
		cache->has_index = false;
	if (!is_whole)
		return;
	cache->stats->cached += kept->anchor_addr != 0;
	if (cache->min_unchanged > list->nr_unchanged)
		cache->min_unchanged = list->nr_unchanged;
	if (++cache->nr_watched < cache->watch_looks)
		return;
	end = list->nr_frames ? list->nr_frames - 1 : 0; /* not the innermost frame */
	index = choose_anchor(list, cache->min_unchanged < end ? cache->min_unchanged : end);
	restart_watch(cache);
	if (!index || (cache->has_index && index < cache->index + MIN_KEPT))
		return;
	if (!cache->is_ours && cache->anchor_addr && cache->nr_unchanged_looks < ABANDONED_LOOKS)
		return;
	/* Make the frame, which this look has shown, the anchor. */
	addr = list->frames[index].addr;
	err = addr == cache->anchor_addr ? 0 : write_word(cache, addr);
	if (err) {
		/* The next look finds out why a target is gone. */
		cache->reason = err == -ESRCH ? CACHE_USABLE : CACHE_REFUSED;
		return;
	}
	cache->is_ours = true;
	cache->has_index = true;
	cache->anchor_addr = addr;
	cache->index = index;
	cache->nr_unchanged_looks = 0;
	cache->nr_cleared = cache->codes->nr_cleared;
}

void frame_cache_invalidate(struct frame_cache *cache)
{
	cache->has_index = false;
	cache->is_current = false;
}

void frame_cache_end(struct frame_cache *cache)
{
	const struct py_offsets *offsets = &cache->codes->build->offsets;

	for (int i = 0; i < MAX_END_TRIES && cache->is_ours && cache->reason == CACHE_USABLE; i++) {
		uint64_t addr, seq;

		if (remote_memory_read_u64(
			    cache->codes->memory,
			    cache->thread_addr + offsets->thread.last_profiled_frame_seq, &seq) ||
		    remote_memory_read_u64(cache->codes->memory,
					   cache->thread_addr + offsets->thread.last_profiled_frame,
					   &addr))
			return;
		if (!addr || (seq == cache->seq && addr != cache->anchor_addr) ||
		    write_word(cache, 0))
			return;
		cache->anchor_addr = 0;
		cache->seq = seq;
	}
}
