/* SPDX-License-Identifier: MIT */
/*
 * Finds out which frames of a deep stack need not be walked at every look, on CPython 3.15 and
 * newer.
 *
 * A thread state has a word for profilers, last_profiled_frame, and a counter,
 * last_profiled_frame_seq. If a profiler writes the address of a live frame, the anchor, into the
 * word, the target reports when that frame is popped: it moves the word to the frame's caller and
 * adds one to the counter. Both are read at the same instant as the frames. While they are
 * unchanged, the anchored frame lives, and so do all its callers: a frame that waits for its
 * callee changes none of the words that a walk reads. If the frame was popped, the caller that
 * the word names replaces it.
 *
 * The anchor is written within the look that has shown its frame. If that look is not proven,
 * what is known about the anchor is forgotten.
 *
 * Any other writer would make the words wrong. If the word changes while the counter does not,
 * another profiler wrote it, and the cache is off for good.
 *
 * A write to the state of a thread that ends would hit freed memory. So only a thread state
 * inside of _PyRuntime is written to: the main thread's, which is static and never freed.
 *
 * Source: CPython 3.15 Include/internal/pycore_interpframe.h
 * (_PyThreadState_UpdateLastProfiledFrame), InternalDocs/frames.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/snapshot.h"

/* Why the cache is not used. */
enum frame_cache_reason {
	CACHE_USABLE,
	CACHE_NO_WORD,	    /* the version or the layout lacks the words */
	CACHE_READ_ONLY,    /* the memory is not writable */
	CACHE_REFUSED,	    /* a write failed */
	CACHE_SHARED,	    /* another profiler writes there as well */
	CACHE_OTHER_ENGINE, /* no CPU is held: nothing proves that the anchor's frame was there */
};

struct frame_cache {
	const struct code_cache *codes; /* borrowed; has the memory and the build */
	remote_addr runtime_addr;
	enum frame_cache_reason reason;
	remote_addr thread_addr; /* the thread state that is written to; 0: none yet */
	uint32_t slot;		 /* of its thread */
	bool is_current;	 /* anchor_addr and seq are from the last look */
	remote_addr anchor_addr;
	uint64_t seq;
	uint64_t nr_unchanged_looks; /* number of looks since these changed */
	bool is_ours;		     /* the anchor was written by this cache */
	bool has_index;		     /* its frame is at index in the list of the last walk */
	uint32_t index;
	uint64_t nr_cleared;	     /* codes->nr_cleared when the frames below it were walked */
	uint32_t min_unchanged;	     /* minimum of unchanged outermost frames while watching */
	uint32_t nr_watched;	     /* looks watched so far */
	uint32_t watch_looks;	     /* number of looks to watch before the anchor is moved */
	struct sampler_stats *stats; /* borrowed; cached and writes are counted here */
};

/*
 * Make a cache that knows nothing. codes and stats are borrowed while it is used; nothing is
 * owned. frame_cache_has_words() returns whether the build has the two words.
 */
void frame_cache_init(struct frame_cache *cache, const struct code_cache *codes,
		      remote_addr runtime_addr, struct sampler_stats *stats);
bool frame_cache_has_words(const struct py_build *build);

/* Add a new thread: finds out whether it is the one whose state may be written to. */
void frame_cache_add_thread(struct frame_cache *cache, const struct snapshot_thread *thread);

/*
 * Before the walk of a thread whose state was read in this look: the frames of list, its last
 * walk, that need not be walked.
 */
struct kept_frames frame_cache_kept(struct frame_cache *cache, const struct snapshot_thread *thread,
				    const struct frame_list *list);

/* After the walk, within the look: update the cache, and write an anchor if it pays. */
void frame_cache_update(struct frame_cache *cache, const struct snapshot_thread *thread,
			const struct frame_list *list, bool is_whole,
			const struct kept_frames *kept);

/* The look is not proven: forget what it showed of the anchor. */
void frame_cache_invalidate(struct frame_cache *cache);

/* End of a run: if the anchor is still ours, write 0 in its place. */
void frame_cache_end(struct frame_cache *cache);
