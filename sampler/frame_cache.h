/* SPDX-License-Identifier: MIT */
/*
 * What of a deep stack need not be copied again at every tick, on CPython 3.15 and newer.
 *
 * A thread state has a word for profilers, last_profiled_frame, and a counter,
 * last_profiled_frame_seq. Whoever writes the address of a frame there, the anchor, is told
 * when that frame is popped: the target itself then moves the word to the frame's caller and
 * adds one to the counter. Both are copied with the thread state, behind the frames. While
 * they are what they were, the anchored frame lives, and so does all that called it: a frame
 * that waits for its callee changes none of the words that a walk looks at.
 *
 * The order of the proof:
 *
 *  - All is copied while it is watched how many outermost frames stay the same. Then the
 *    address of the innermost of those is written (CACHE_WRITTEN). It may have been popped
 *    just before; then the anchor is an address and no more, until something is there again.
 *  - The next copy, begun behind the write, shows a live frame there, and anchor and counter
 *    behind it (CACHE_SEEN): that frame is told of from that copy on.
 *  - If the copy after that has the same anchor and the same counter behind it, the frame
 *    lived while all of that copy was taken. So what it shows below the frame holds as long
 *    as both words stay (CACHE_HELD), and need not be copied as long.
 *
 * So the words behind one copy are at once those before the next: in between nothing that
 * was left out has changed. If the anchored frame was popped the anchor is a caller of it;
 * a few callers are copied as well (SLACK_BYTES), and one of them takes its place without
 * any write. Below that, the thread is copied again at once, all of it.
 *
 * Anybody else who writes there would make the words lie. A word that changes while the
 * counter stands still, or that names no caller of the anchor, was written by another
 * profiler, and the cache is off for good. Of another one that writes twice between two
 * ticks, at last just the address that is the anchor, nothing can be seen.
 *
 * Writing races the end of a thread, whose state is freed. So only a thread state inside of
 * _PyRuntime itself is written to, the main thread's, which is static and never freed.
 *
 * Source: CPython 3.15 Include/internal/pycore_interpframe.h
 * (_PyThreadState_UpdateLastProfiledFrame), InternalDocs/frames.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/code.h"
#include "sampler/python/frame_list.h"
#include "sampler/python/offsets.h"
#include "sampler/snapshot.h"

enum frame_cache_state {
	CACHE_OFF,
	CACHE_WATCHING, /* all is copied; nothing that was written is relied on */
	CACHE_WRITTEN,	/* the anchor was written, and not seen yet */
	CACHE_SEEN,	/* a copy has shown the anchored frame */
	CACHE_HELD,	/* what lies below it is not copied */
};

/* Why it is off, or is not used. */
enum frame_cache_reason {
	CACHE_USABLE,
	CACHE_NO_WORD,	 /* the version, or the layout, has none for it */
	CACHE_READ_ONLY, /* the memory may not be written to */
	CACHE_REFUSED,	 /* a write failed */
	CACHE_SHARED,	 /* another profiler writes there, too */
};

struct frame_cache {
	struct remote_memory *memory;	/* borrowed */
	const struct py_build *build;	/* borrowed */
	const struct code_cache *codes; /* borrowed */
	remote_addr runtime_addr;
	enum frame_cache_state state;
	enum frame_cache_reason reason;
	remote_addr thread_addr; /* the thread state that is written to; 0: none yet */
	uint32_t slot;		 /* of the thread that has it */
	/* What stood in the thread state behind the last copy, or was written since. */
	bool looked; /* there was one */
	remote_addr last_addr;
	uint64_t last_seq;
	bool owned;	   /* there was a write */
	uint64_t quiet_ns; /* when it changed last, if it is not ours; 0: not known */
	uint64_t written_ns;
	/* From CACHE_SEEN on: */
	uint32_t index;	     /* the anchored frame's in the list of its thread */
	uint64_t nr_cleared; /* of codes, when all code of the frames below was known */
	/* How many outermost frames stayed the same, in so many ticks. */
	uint32_t least_same;
	uint32_t nr_watched;
	uint32_t patience; /* ticks to watch before the next write */
	uint64_t nr_held;  /* ticks since CACHE_HELD began */
	uint64_t nr_writes;
	uint64_t nr_kept;  /* copies of which something was left out, and that were used */
	uint64_t nr_again; /* the user's: copies that had to be taken again, whole */
};

/*
 * A cache that is on if the build has the words and the memory can be written to; all but
 * reading is left to frame_cache_learn(). Everything is borrowed as long as it is used.
 */
void frame_cache_init(struct frame_cache *cache, struct remote_memory *memory,
		      const struct py_build *build, remote_addr runtime_addr,
		      const struct code_cache *codes);

/* Whether a build has the words, where we know them to be. */
bool frame_cache_has_words(const struct py_build *build);

/* Take notice of a thread that is new: it may be the one. */
void frame_cache_add_thread(struct frame_cache *cache, const struct snapshot_thread *thread);

/*
 * After each copy of a thread, whose frames of the last walk list has: whether what was left
 * out of it is proven to be what it was. The thread's stack then says so (nr_kept). If not,
 * the thread is to be copied again: nothing is left out of it any more.
 */
bool frame_cache_proves(struct frame_cache *cache, struct snapshot_thread *thread,
			const struct frame_list *list);

/*
 * After a walk of the thread, which was complete if walked: learn from it, and write the
 * anchor if it is worth it. now_ns is the time of the tick.
 */
void frame_cache_learn(struct frame_cache *cache, struct snapshot_thread *thread,
		       const struct frame_list *list, bool walked, uint64_t now_ns);

/* The same for a copy that was held back (held_copies.h): nothing is written. */
void frame_cache_watch(struct frame_cache *cache, const struct snapshot_thread *thread,
		       const struct frame_list *list);

/* Whether an anchor was written of which it is not known yet that its frame lives. */
static inline bool frame_cache_is_unclear(const struct frame_cache *cache)
{
	return cache->state == CACHE_WRITTEN || cache->state == CACHE_SEEN;
}

/* The end of a run: if the anchor is ours still, 0 is written in its place. */
void frame_cache_end(struct frame_cache *cache);
