/* SPDX-License-Identifier: MIT */
/*
 * Ticks that copy nothing but the chunk of the one thread that can run, held back until the
 * next full tick proves what they show. A piece of a read costs 0.4 µs and a call 1.1 µs,
 * most of a tick; the words of the thread state and of the interpreter seldom change within
 * microseconds. So between two full ticks some copy the chunk alone, which is the stack:
 * what the words are at both ends they were in between.
 *
 * Where frames leave their words behind when they are popped (LEAF_BY_STACKTOP) the thread
 * state, which tells how far the stack reaches, is copied as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/frame_list.h"
#include "sampler/snapshot.h"

/* So many between two full ticks, and for so long after the first of those. */
enum { MAX_HELD_COPIES = 7, HELD_MAX_NS = 50000 };

/* Of a data-stack chunk, [from_bytes, done_bytes) of bytes are good. */
struct held_bytes {
	uint8_t *bytes;
	size_t from_bytes, done_bytes, max_bytes;
	size_t border_bytes; /* what lies from there on was copied first; 0: nothing was */
};

/* What the thread state says of the stack; all 0 where it was not copied with it. */
struct held_top {
	remote_addr newest_chunk_addr, datastack_top_addr;
};

struct held_copy {
	uint64_t time_ns; /* of its tick */
	uint64_t copy_ns; /* how long it took */
	struct held_bytes bytes;
	struct held_top top;
};

/* All zero nothing is held, and the next tick is to be a full one. */
struct held_copies {
	struct held_copy copies[MAX_HELD_COPIES]; /* by rising time */
	uint32_t nr;
	uint32_t nr_shown;		/* of them, while they are looked at */
	struct chunk_copy *shown_in;	/* meanwhile; else NULL */
	struct held_bytes last;		/* meanwhile the copy of the full tick */
	struct snapshot_thread *thread; /* borrowed; NULL: the next tick is to be a full one */
	remote_addr chunk_addr;		/* its only chunk that is copied */
	uint32_t header_bytes;		/* of a chunk */
	struct code_clock clock;	/* of the full tick before them */
	uint64_t proven_ns;		/* when that was */
	uint64_t off_take;		/* up to this snapshot all ticks are full */
	uint64_t nr_off_ticks;		/* so many were the last time */
	uint8_t state[THREAD_STATE_MAX_BYTES];
};

/* Free the copies. snapshot still has the budget that they were taken out of. */
void held_copies_done(struct held_copies *held, struct snapshot *snapshot);

/*
 * Behind a full tick: the thread that may be copied alone, if there is one: the only one that
 * can run before the GIL has moved. NULL if not, or if it was turned off.
 */
struct snapshot_thread *held_copies_candidate(const struct held_copies *held,
					      const struct snapshot *snapshot);

/*
 * Whether the ticks behind the full one at now_ns may be held back is decided: the candidate's
 * last stack, list, must be plain, of one chunk and without links; nobody may collect garbage,
 * and no code objects come or go.
 */
void held_copies_choose(struct held_copies *held, struct snapshot_thread *thread,
			const struct snapshot *snapshot, const struct frame_list *list,
			uint64_t now_ns);

/* Whether the tick at now_ns may be held back. */
static inline bool held_copies_may_add(const struct held_copies *held, uint64_t now_ns)
{
	return held->thread && held->nr < MAX_HELD_COPIES && now_ns - held->proven_ns < HELD_MAX_NS;
}

/* Take a copy and hold it. 0; -ESRCH, -EPERM, -ENOMEM, -E2BIG: none was taken. */
int held_copies_add(struct held_copies *held, struct snapshot *snapshot, uint64_t now_ns);

/*
 * Behind the copy of a full tick: put the held copies in the place of the thread's, one
 * after the other, each with the one before it to compare with, until held_copies_drop().
 * False: there are no more, or they are not of the memory that was copied now, or a newer
 * chunk was begun meanwhile.
 */
bool held_copies_show_next(struct held_copies *held, const struct held_copy **ret_copy);

/* Forget what was held; the copy of the full tick is in its place again. */
void held_copies_drop(struct held_copies *held);

/*
 * One of them could not be proven: all ticks are full for a time, a longer one each time that
 * this comes soon again. More than once in a tick is once.
 */
void held_copies_turn_off(struct held_copies *held, const struct snapshot *snapshot);
