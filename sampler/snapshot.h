/* SPDX-License-Identifier: MIT */
/*
 * What one look shows of a whole process: for every interpreter the words that tell whether the
 * thread list or the code objects changed and who has the GIL, for every thread its state. Stacks
 * are walked by whoever took the snapshot, within the same look.
 *
 * All that was read is of one instant if that can be proven; snapshot_end() tells. One proof is
 * enough for all threads of a GIL: frames, data-stack chunks and generators change only under it.
 * Whoever had it last may take it again unnoticed, locked or not; everybody else is told by
 * last_holder and switch_number, which take_gil() sets before it returns. So with both equal at the
 * beginning and the end, and a witness (sampler/witness.h) that the last holder stood still,
 * nothing moved. The list of thread states is under another lock: it is compared at each look and
 * read again when it has changed.
 *
 * A thread that cannot have had the GIL since a look that held is where it was, and is not copied.
 *
 * Source: CPython take_gil() and drop_gil(), Python/ceval_gil.c (to 3.11: ceval_gil.h).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/gil.h"
#include "sampler/look_memory.h"
#include "sampler/preempt.h"
#include "sampler/python/code.h"
#include "sampler/python/offsets.h"
#include "sampler/python/thread_names.h"
#include "sampler/python/threads.h"
#include "sampler/witness.h"

struct snapshot_thread {
	struct thread_ref ref;
	uint32_t slot;	/* its place in the user's own array; reused after it ended */
	pid_t tid;	/* in our PID namespace, set by the user; 0: not known (yet) */
	bool is_new;	/* not seen in a look yet; the user resets it */
	bool copied;	/* state was read and is still the thread's */
	bool unchanged; /* the GIL proves that it is where it was: nothing of it was read */
	bool is_known;	/* the user has handed on where it is: snapshot_know(); it may reset it */
	bool checked;	/* copied only to see whether the GIL tells the truth */
	bool seen;	/* used while the list is refreshed */
	bool holds_gil;
	uint64_t runner_look; /* the last one in which it could run: its witness is needed */
	bool has_witness;     /* witness was opened, for witness_tid */
	pid_t witness_tid;
	uint64_t known_cpu_ns; /* its task clock when the user had its stack; 0: not known */
	bool is_sealed;	       /* witness was there from the beginning of this look */
	bool held;	       /* behind a look: what was read of it is of one instant */
	struct witness witness;
	struct code_clock clock; /* of its interpreter, at this look */
	uint8_t state[THREAD_STATE_MAX_BYTES];
};

struct snapshot_interpreter {
	struct interpreter_ref ref;
	struct code_clock clock;  /* of this look */
	bool has_own_gil;	  /* else it shares that of the main one */
	struct gil gil;		  /* at the beginning of this look */
	struct gil told;	  /* of the last look that held, by which threads are known */
	uint32_t gil_seal;	  /* of the look: the words of gil */
	uint32_t head_seal;	  /* of the look: the head of the list of threads */
	uint32_t generation_seal; /* of the look: the counters of code, where there are any */
	uint32_t version_seal;
	bool held;		   /* behind a look: nobody ran who could have had the GIL */
	bool collecting;	   /* garbage, some thread of it */
	remote_addr gc_frame_addr; /* 3.15: where that was begun, or 0 */
	struct thread_name_hints name_hints; /* the user's, kept while it is listed */
};

/* What a look was worth. */
enum instant_verdict {
	INSTANT_HELD,	/* everything that was read is of one instant */
	INSTANT_MOVED,	/* some thread may have run */
	INSTANT_LOCKED, /* the sampler slept: on the target's memory map, or on a page of it */
};

struct snapshot {
	struct look_memory look;
	struct remote_memory *memory; /* that of look: everything is read through it */
	const struct py_build *build; /* borrowed */
	remote_addr runtime_addr;
	remote_addr current_thread_addr; /* 3.6: the variable that names the GIL's holder; or 0 */
	const volatile sig_atomic_t
		*stop; /* borrowed, may be NULL: once set, long work is cut off */
	struct snapshot_interpreter *interpreters;
	size_t nr_interpreters;
	struct snapshot_thread **threads; /* each allocated; owned */
	size_t nr_threads;
	uint32_t nr_slots;     /* one above the highest slot that was given out */
	uint64_t nr_refreshes; /* thread lists taken over */
	uint64_t tick;	       /* of the last look */
	bool stale;	       /* the thread list has changed: refresh before the next look */
	bool is_still;	       /* the memory does not change, and may lack pieces */
	int list_err;	       /* of that: why the lists could not be read to their ends, or 0 */

	const struct witness_means *means; /* borrowed; NULL: nothing can run (a core, a tape) */
	struct preempt *preempt;	   /* borrowed; NULL: no CPU is held */
	held_cpus held;
	const struct snapshot_thread *only; /* the look under way is at this thread; NULL: at all */
	bool gil_distrusted;		    /* a thread moved without having had it */
	bool cannot_follow; /* behind a look: a thread that could run never uses a CPU of ours */
};

/*
 * A snapshot of nothing yet; memory and build are borrowed until snapshot_done(), which frees the
 * threads, and accepts one that is all zero.
 */
void snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr);
void snapshot_done(struct snapshot *snapshot);

/*
 * Read the thread list anew; threads that are still there keep what was learnt of
 * them. 0, or the errors of thread_list_read() (the old list then stays); -ESRCH
 * also if the target runs another program by now (remote_memory_check()).
 */
int snapshot_refresh(struct snapshot *snapshot);

/* Whether the user wants long work to be cut off. */
static inline bool snapshot_stopped(const struct snapshot *snapshot)
{
	return snapshot->stop && *snapshot->stop;
}

/*
 * Begin a look at every thread that may have run since it was known, or at only one; its state is
 * read. What snapshot->look reads until snapshot_end() is of that look. Threads whose state could
 * not be read, or is another thread's by now, have copied == false, and stale is set. 0; -ENOMEM,
 * -ESRCH, -EPERM: no look is under way then.
 */
int snapshot_begin(struct snapshot *snapshot, struct snapshot_thread *only);

/*
 * End the look, and tell of each thread whether it held. *ret_verdict is INSTANT_HELD if all of
 * them did, else why not. 0; -ENOMEM, -ESRCH, -EPERM.
 */
int snapshot_end(struct snapshot *snapshot, enum instant_verdict *ret_verdict);

/*
 * Behind a look that did not hold: whether that one thread stood still all the same. It neither had
 * the GIL nor took it, whoever else did.
 */
bool snapshot_stands_apart(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* The user has the stack of a thread as this look has found it. */
void snapshot_know(struct snapshot_thread *thread);

/* Behind a look that held and was handed on: threads are known by what their GILs said in it. */
void snapshot_tell(struct snapshot *snapshot);

/* Whether a thread had its GIL at the last look, be it one that was at another thread only. */
bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* The thread that could run in the last look, if there is exactly one; else NULL. */
struct snapshot_thread *snapshot_runner(const struct snapshot *snapshot);
