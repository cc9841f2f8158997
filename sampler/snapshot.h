/* SPDX-License-Identifier: MIT */
/*
 * What one look shows of a whole process: for each interpreter the words that tell whether the
 * thread list or the code objects changed and which thread has the GIL, and for each thread its
 * state. The caller walks the stacks within the same look: snapshot_begin(), then reads and walks
 * through snapshot->memory, then snapshot_end(), which reports what is of one instant. The caller
 * drops and counts what cannot be proven; it never repeats a look because of what the look
 * showed.
 *
 * The list of thread states has a lock of its own. Each look compares its head, and the list is
 * read again when it has changed. A thread that cannot have had the GIL since a proven look is
 * where it was, and is not copied.
 *
 * There are four proofs. A look needs those that its threads need:
 *
 * dead       Nothing of it runs: a core file, a tape, a process that somebody has stopped. This is
 *            assumed until snapshot_set_live() is called.
 * preempted  The running thread was preempted by the sampler, which holds its CPU
 *            (sampler/preempt.h), and its witness (sampler/witness.h) shows that it executed
 *            nothing in user mode.
 * covered    Frames, data-stack chunks, generators and code objects change only under the GIL. So
 *            if the last holder of the GIL stood still, and no thread took the GIL (take_gil() sets
 *            last_holder and switch_number before it returns), all threads stood still. The last
 *            holder needs a proof even if the GIL is free, as it may take it again unnoticed. This
 *            does not cover the list of thread states, which is under another lock.
 * waiting    A thread that had the GIL at neither end of a look nor in between is where it was,
 *            whatever else ran. This holds between looks, too: it need not be read again. If others
 *            passed the GIL around between two looks, the same follows if it has used no CPU time
 *            and its state can be run by no other thread, which is known from 3.10 on.
 *
 * The last two do not hold for states that a thread may swap without a trace in the GIL's words,
 * as with several interpreters up to 3.12. There each thread needs a proof of its own
 * (snapshot_may_swap()).
 *
 * All proofs are about the threads that the thread states name, but another thread may run a
 * state. sampler/thread_stack.h detects that from 3.10 on. Where it cannot, there is evidence but
 * no proof: a state that moves within a look although its thread stood still is not trusted for a
 * while.
 *
 * A sample that is taken in the target's own interrupt is of one instant by itself.
 *
 * Source: CPython take_gil() and drop_gil(), Python/ceval_gil.c (to 3.11: ceval_gil.h).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"
#include "procmem/sched/cpu_clock.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/gil.h"
#include "sampler/look_memory.h"
#include "sampler/preempt.h"
#include "sampler/thread_stack.h"
#include "sampler/witness.h"

/* The result of a look. */
enum instant_verdict {
	INSTANT_PROVEN, /* everything that was read is of one instant */
	INSTANT_MOVED,	/* some thread may have run */
	INSTANT_LOCKED, /* the sampler slept: on the target's memory map, or on a page of it */
};

/* A GIL as the looks see it. */
struct instant_gil {
	struct gil_place place;
	struct gil now;	      /* at the beginning of this look */
	struct gil committed; /* by snapshot_commit(): known threads are judged by it */
	uint32_t seal;	      /* of its words in this look */
	bool not_taken;	      /* after a look: no thread took it but its last holder */
};

/* A thread as the looks see it. All zero: new. */
struct instant_thread {
	struct witness witness;
	pid_t witness_tid; /* the thread that it was opened for */
	bool has_witness;
	/* set by the caller: looks need no proof of it, so its witness is not read */
	bool needs_no_proof;
	bool is_watched;	/* the witness was read at the beginning of this look */
	bool stood_still;	/* after a look: the witness has shown that it stood still */
	bool is_own;		/* set by the caller in a look: no other thread can run the state */
	bool is_foreign;	/* set by the caller in a look: another thread runs the state */
	bool runner_is_unknown; /* set by the caller in a look: which thread runs it is unknown */
	bool has_moved; /* set by the caller in a look: the state is no longer where it was found */
	/* until this look another thread is assumed to run the state */
	uint64_t foreign_until_look;
	/* of a late look: it ran since the last late look, and slept before this one */
	bool has_slept;
	uint64_t late_runs; /* its run count at the last late look; 0: not read */
	/* the last look in which it could run, so that its witness is needed */
	uint64_t runner_look;
	bool is_known; /* the caller has emitted its stack: snapshot_mark_known(); may be reset */
	/* plus 1; 0: unknown. Its task clock when the caller got its stack: */
	uint64_t known_cpu_ns;
	/* plus 1; 0: unknown. What cpu_clock showed before this look read the thread: */
	uint64_t look_used_ns;
	uint64_t known_used_ns; /* and before the look that the caller got its stack from */
};

struct instant {
	struct look_memory look;
	bool is_dead;		    /* nothing runs: no proof is needed */
	struct witness_means means; /* used unless is_dead */
	struct preempt *preempt;    /* borrowed; NULL: no CPU is held */
	struct followed_cpus followed;
	cpu_set_t held;
	uint64_t nr_looks;
	bool has_slept; /* after a look: the sampler went to sleep in it */
	/* set by the caller: this look is so late that the target may have gone to sleep */
	bool is_late;
	bool gil_distrusted;	 /* set by the caller: a thread moved without having had it */
	bool clocks_distrusted;	 /* set by the caller: a thread moved without having used time */
	uint64_t nr_stood_still; /* times that a thread that could run was found to stand still */
	uint64_t nr_foreign;	 /* times that another thread was found to run a state */
	uint64_t nr_unreachable; /* looks lost because a thread was on a CPU that we may not use */
	uint64_t unreachable_look; /* the last of them */
};

struct snapshot_thread {
	struct thread_ref ref;
	uint32_t slot;	   /* index into the caller's array; reused after the thread has ended */
	pid_t tid;	   /* in our PID namespace, set by the caller; 0: not known (yet) */
	bool is_new;	   /* not seen in a look yet; the caller resets it */
	bool was_copied;   /* state was read and is still the thread's */
	bool is_unchanged; /* proven to be where it was: nothing of it was read */
	bool is_checked;   /* copied only to verify what the GIL says */
	bool was_seen;	   /* used while the list is refreshed */
	bool has_ended;	   /* the witness says so: the state is another thread's, or gone */
	bool holds_gil;
	bool is_proven; /* after a look: what was read of it is of one instant */
	bool has_slept; /* after a late look: the thread that could run has gone to sleep since */
	struct thread_stack stack; /* the caller's */
	/*
	 * The task clock of tid, if it may be read; set by the caller before a look at all threads,
	 * borrowed until that has begun. NULL: none.
	 */
	struct cpu_clock *cpu_clock;
	struct instant_thread proof;
	struct code_clock clock; /* of its interpreter, at this look */
	uint8_t state[THREAD_STATE_MAX_BYTES];
};

struct snapshot_interpreter {
	struct interpreter_ref ref;
	struct code_clock clock; /* at this look */
	bool has_own_gil;	 /* otherwise it shares that of the main interpreter */
	struct instant_gil gil;
	uint32_t head_seal; /* of the head of the thread list in this look */
	/* of the counters of code in this look, if the version has them */
	uint32_t generation_seal;
	uint32_t version_seal;
	bool is_proven;		   /* after a look: no thread ran that could have had the GIL */
	bool has_slept;		   /* after a late look: its last holder has gone to sleep */
	bool is_collecting;	   /* some thread of it collects garbage */
	remote_addr gc_frame_addr; /* 3.15: the frame in which that began, or 0 */
	/* the caller's; kept while the interpreter is listed */
	struct thread_name_hints name_hints;
};

struct snapshot {
	struct instant instant;
	struct remote_memory *memory; /* that of the instant: all reads go through it */
	const struct py_build *build; /* borrowed */
	remote_addr runtime_addr;
	remote_addr current_thread_addr;   /* 3.6: the variable that names the GIL's holder; or 0 */
	const volatile sig_atomic_t *stop; /* borrowed, may be NULL: once set, long work ends */
	struct snapshot_interpreter *interpreters;
	size_t nr_interpreters;
	struct snapshot_thread **threads; /* owned, and each element, too */
	size_t nr_threads;
	uint32_t nr_slots;     /* one above the highest slot in use so far */
	uint64_t nr_refreshes; /* number of thread lists read */
	bool is_stale;	       /* the thread list has changed: refresh before the next look */
	bool is_core;	       /* the memory does not change, and may lack pieces */
	int list_err; /* with is_core: why the lists could not be read to their ends, or 0 */

	const struct snapshot_thread *only; /* the only thread of the current look; NULL: all */
};

/*
 * An empty snapshot. memory and build are borrowed until snapshot_done(), which frees the threads
 * and accepts a snapshot that is all zero.
 */
void snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr);
void snapshot_done(struct snapshot *snapshot);

/* From now on the target runs, and means are what there is to prove with. */
void snapshot_set_live(struct snapshot *snapshot, const struct witness_means *means);

/*
 * Read the thread list again. Threads that are still listed keep what was learnt about them.
 * Returns 0, or the errors of thread_list_read(), which leave the old list in place; -ESRCH also
 * if the target runs another program (remote_memory_check()).
 */
int snapshot_refresh(struct snapshot *snapshot);

/* Whether the caller wants long work to be cut off. */
static inline bool snapshot_stopped(const struct snapshot *snapshot)
{
	return snapshot->stop && *snapshot->stop;
}

/*
 * Begin a look, at every thread that may have run since it was known or, unless only is NULL, at
 * that one thread, and read their states. What snapshot->memory reads until snapshot_end()
 * belongs to the look. A thread whose state could not be read, or belongs to another thread now,
 * has was_copied == false, and is_stale is set. Returns 0; -ENOMEM, -ESRCH, -EPERM: then no look
 * is in progress.
 */
int snapshot_begin(struct snapshot *snapshot, struct snapshot_thread *only);

/*
 * End the look, and set is_proven of each thread. *ret_verdict is INSTANT_PROVEN if all are proven,
 * and otherwise the reason. Returns 0; -ENOMEM, -ESRCH, -EPERM.
 */
int snapshot_end(struct snapshot *snapshot, enum instant_verdict *ret_verdict);

/*
 * After a look that is not proven: whether this thread stood still all the same, because it
 * neither had the GIL nor took it.
 */
bool snapshot_was_waiting(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/*
 * Evaluate what the caller has set in thread->proof in the current look. Counts a state that
 * another thread runs, and distrusts it for the next looks. Returns whether another thread runs it,
 * or may.
 */
bool snapshot_record_foreign(struct snapshot *snapshot, struct snapshot_thread *thread);

/* The caller has the stack of a thread as the last look found it. */
void snapshot_mark_known(struct snapshot_thread *thread);

/*
 * After a look whose threads were all emitted or are no longer known: from now on the known ones
 * are judged by what their GILs said in it.
 */
void snapshot_commit(struct snapshot *snapshot);

/*
 * Whether a thread state may be run by a thread that it does not name, and without that thread
 * taking the GIL: up to 3.12 this is how code in another interpreter is called.
 */
bool snapshot_may_swap(const struct snapshot *snapshot);

/*
 * Whether a thread that needs no GIL has had a CPU since the last look. If it still runs, reading
 * its clock would interrupt it. False if that is unknown.
 */
bool snapshot_has_run(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* Whether, by its GIL, a thread could run during the last look. */
bool snapshot_may_run(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* The GIL that a thread uses. */
const struct instant_gil *snapshot_gil(const struct snapshot *snapshot,
				       const struct snapshot_thread *thread);

/* Address of the word that says whether an interpreter collects garbage; 0: none. */
remote_addr snapshot_collector_addr(const struct snapshot *snapshot,
				    const struct snapshot_interpreter *interpreter);

/*
 * Use the words of an interrupt as if a look had read them: those of the thread's GIL, and the
 * word at its snapshot_collector_addr().
 */
void snapshot_set_words(struct snapshot *snapshot, struct snapshot_thread *thread,
			const uint8_t *gil_words, uint64_t collector);

/* Whether a thread had its GIL at the last look, which may have been at another thread only. */
bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread);
