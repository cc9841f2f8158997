/* SPDX-License-Identifier: MIT */
/*
 * One tick's copy of a whole process: for every thread its data-stack chunks and
 * the links between them, then its thread state; for every interpreter the words
 * that tell whether the thread list or the code objects changed. In the steady
 * state that is one vectored read.
 *
 * Order matters: copying a cache line that the target is writing takes it away
 * from the target's core, and what is copied later in the same call is seen in
 * that stalled state. So what changes fastest comes first: per thread the
 * links, the chunks from the oldest up, generators once more, the thread state
 * last. Where frames are objects it comes first, and they from the innermost on. What has to
 * be older than the frames comes before all of it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/gil.h"
#include "sampler/python/code.h"
#include "sampler/python/offsets.h"
#include "sampler/python/stack_copy.h"
#include "sampler/python/thread_names.h"
#include "sampler/python/threads.h"

struct snapshot_thread {
	struct thread_ref ref;
	uint32_t slot; /* its place in the user's own array; reused after it ended */
	bool is_new;   /* not seen in a tick yet; the user resets it */
	bool copied;   /* the thread state was read and is still the thread's */
	/*
	 * This tick did not copy it: the GIL proves that it is where it was. What was copied
	 * last stands, but for what changes without the GIL: whether it waits for it.
	 */
	bool unchanged;
	bool due;	     /* it is part of the read under way */
	bool checked;	     /* copied to see whether the GIL tells the truth */
	uint64_t awake_take; /* up to this one it is copied by every snapshot_take() */
	bool seen;	     /* used while the list is refreshed */
	struct stack_copy stack;
	struct code_clock clock; /* of the copy of its stack */
	bool holds_gil;		 /* at that copy */
	uint8_t state[THREAD_STATE_MAX_BYTES];
	remote_addr cframe_addr; /* 3.11, 3.12: where the current frame was named last */
	uint8_t cframe[16];
};

/* Room for the fields of an interpreter state from the first to the last one used. */
#define INTERPRETER_WINDOW_BYTES 1536

struct snapshot_interpreter {
	struct interpreter_ref ref;
	uint8_t window[INTERPRETER_WINDOW_BYTES];
	uint32_t version_before;   /* func_state.next_version, copied first */
	uint32_t version_after;	   /* the same, copied last */
	uint32_t tlbc_generation;  /* of thread-local bytecode, copied last */
	bool reads_version_before; /* they are part of this tick's read */
	bool reads_version_after;
	uint64_t churn_tick;		     /* when code objects were last seen to come or go */
	struct code_clock clock;	     /* of this tick */
	struct gil gil, gil_before;	     /* as read last, and by the read before */
	bool collecting;		     /* garbage, some thread of it */
	remote_addr gc_frame_addr;	     /* 3.15: where that was begun, or 0 */
	struct thread_name_hints name_hints; /* the user's, kept while it is listed */
};

struct snapshot {
	struct remote_memory *memory; /* borrowed */
	const struct py_build *build; /* borrowed */
	remote_addr runtime_addr;
	const volatile sig_atomic_t
		*stop; /* borrowed, may be NULL: once set, long work is cut off */
	struct snapshot_interpreter *interpreters;
	size_t nr_interpreters;
	struct snapshot_thread **threads; /* each allocated; owned */
	size_t nr_threads;
	struct copy_budget budget; /* of the copies of all threads */
	uint32_t nr_slots;	   /* one above the highest slot that was given out */
	uint64_t nr_refreshes;	   /* thread lists taken over */
	uint64_t tick;		   /* of the last snapshot; one that is taken again has its own */
	uint64_t nr_takes;	   /* snapshots of the whole process */
	bool stale;		   /* the thread list has changed: refresh before the next tick */
	bool is_still;		   /* the memory does not change, and may lack pieces */
	int list_err; /* of that: why the lists could not be read to their ends, or 0 */

	struct remote_range *ranges;
	size_t nr_ranges, max_ranges;
	uint32_t window_offset, window_bytes; /* of the interpreter state */
	bool window_has_gc;		      /* the collector's words are in it */
	remote_addr head_addr;		      /* interpreters_head */
	uint64_t head_tick;		      /* when it was read last */
	bool reads_head;		      /* it is part of this tick's read */
	uint8_t gil[GIL_BYTES];		      /* before 3.12: the runtime's */
	uint32_t runtime_collecting;	      /* before 3.9: the runtime's */
	bool gil_distrusted;		      /* a thread moved without having had it */
	size_t nr_pieces;		      /* that this tick's reads tried */
};

/*
 * A snapshot of nothing yet; memory and build are borrowed until snapshot_done(). 0, or
 * -ENOTSUP: the fields of an interpreter state lie too far apart. snapshot_done() frees
 * the threads and what was copied of them; also for one that snapshot_init() refused,
 * or that is all zero.
 */
int snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		  const struct py_build *build, remote_addr runtime_addr);
void snapshot_done(struct snapshot *snapshot);

/*
 * Read the thread list anew; threads that are still there keep what was learnt of
 * them. 0, or the errors of thread_list_read() (the old list then stays); -ESRCH
 * also if the target runs another program by now (remote_memory_check()). Once *stop
 * is set the chunks of new threads are not learnt any more.
 */
int snapshot_refresh(struct snapshot *snapshot);

/* Whether the user wants long work to be cut off. */
static inline bool snapshot_stopped(const struct snapshot *snapshot)
{
	return snapshot->stop && *snapshot->stop;
}

/*
 * Take one: copies every thread that may have run since it was copied last, and decodes it
 * (dormancy.h tells which). Threads whose state could not be read, or is another thread's
 * by now, have copied == false, and stale is set. 0; -ESRCH, -EPERM, -ENOMEM.
 */
int snapshot_take(struct snapshot *snapshot);

/*
 * Copy one thread again, with the links it has now, as if the tick had come a
 * moment later. Errors of snapshot_take().
 */
int snapshot_retake(struct snapshot *snapshot, const struct snapshot_thread *thread);

/* Whether garbage is collected in some interpreter. */
bool snapshot_is_collecting(const struct snapshot *snapshot);

/* Whether a thread held its GIL when threads were copied last, be it another one that was. */
bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* Whether code objects of an interpreter have come or gone lately. */
bool snapshot_is_churning(const struct snapshot *snapshot,
			  const struct snapshot_interpreter *interpreter);
