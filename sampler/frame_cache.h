/* SPDX-License-Identifier: MIT */
/*
 * What of a deep stack need not be walked at every look, on CPython 3.15 and newer.
 *
 * A thread state has a word for profilers, last_profiled_frame, and a counter,
 * last_profiled_frame_seq. Whoever writes the address of a live frame there, the anchor, is told
 * when that frame is popped: the target itself then moves the word to the frame's caller and adds
 * one to the counter. Both are read at the same instant as the frames. While they are what they
 * were, the anchored frame lives, and so does all that called it: a frame that waits for its callee
 * changes none of the words that a walk looks at. If it was popped, a caller that the word names
 * takes its place.
 *
 * The anchor is written within the look that has shown its frame; if that look did not hold, what
 * is known of the anchor is forgotten.
 *
 * Anybody else who writes there would make the words lie. A word that changes while the counter
 * stands still was written by another profiler, and the cache is off for good.
 *
 * A write to the state of a thread that ends would hit freed memory. So only a thread state inside
 * of _PyRuntime itself is written to, the main thread's, which is static and never freed.
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

/* Why it is not used. */
enum frame_cache_reason {
	CACHE_USABLE,
	CACHE_NO_WORD,	    /* the version, or the layout, has none for it */
	CACHE_READ_ONLY,    /* the memory may not be written to */
	CACHE_REFUSED,	    /* a write failed */
	CACHE_SHARED,	    /* another profiler writes there, too */
	CACHE_OTHER_ENGINE, /* no CPU is held: nothing proves that the anchor's frame was there */
};

struct frame_cache {
	const struct code_cache *codes; /* borrowed; has the memory and the build, too */
	remote_addr runtime_addr;
	enum frame_cache_reason reason;
	remote_addr thread_addr; /* the thread state that is written to; 0: none yet */
	uint32_t slot;		 /* of the thread that has it */
	bool looked;		 /* anchor_addr and seq are what the last look found */
	remote_addr anchor_addr;
	uint64_t seq;
	uint64_t nr_still; /* looks since these changed */
	bool is_ours;	   /* the anchor was written here */
	bool is_held;	   /* its frame is that of index, of the list as it was walked last */
	uint32_t index;
	uint64_t nr_cleared; /* of codes, when the frames below were walked */
	uint32_t least_same; /* outermost frames that stayed the same while it was watched */
	uint32_t nr_watched; /* looks since then */
	uint32_t patience;   /* how many looks are watched before the anchor is moved */
	struct sampler_stats *stats; /* borrowed: cached and writes are counted here */
};

/*
 * A cache that knows nothing yet. codes and stats are borrowed as long as it is used; nothing is owned.
 * frame_cache_has_words() tells whether the build has the two words.
 */
void frame_cache_init(struct frame_cache *cache, const struct code_cache *codes,
		      remote_addr runtime_addr, struct sampler_stats *stats);
bool frame_cache_has_words(const struct py_build *build);

/* A thread that is new: whether it is the one whose state may be written to is found out here. */
void frame_cache_add_thread(struct frame_cache *cache, const struct snapshot_thread *thread);

/*
 * Before the walk of a thread whose state was read at this look: the frames of list, its last walk,
 * that need not be walked.
 */
struct kept_frames frame_cache_kept(struct frame_cache *cache, const struct snapshot_thread *thread,
				    const struct frame_list *list);

/* Behind the walk, within the look: learn from it, and write an anchor where that pays. */
void frame_cache_learn(struct frame_cache *cache, const struct snapshot_thread *thread,
		       const struct frame_list *list, bool is_whole,
		       const struct kept_frames *kept);

/* The look did not hold: what it told of the anchor is worth nothing. */
void frame_cache_doubt(struct frame_cache *cache);

/* The end of a run: if the anchor is ours still, 0 is written in its place. */
void frame_cache_end(struct frame_cache *cache);
