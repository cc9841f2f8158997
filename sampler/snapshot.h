/* SPDX-License-Identifier: MIT */
/*
 * What one look shows of a whole process: for every interpreter the words that tell whether the
 * thread list or the code objects changed and who has the GIL, for every thread its state. Stacks
 * are walked by whoever took the snapshot, within the same look: snapshot_begin(), reads and walks
 * through snapshot->memory, snapshot_end(), which tells what of it is of one instant. What cannot
 * be proven is dropped by whoever looked, and counted; it is never looked at again because of what
 * it showed.
 *
 * The list of thread states is under a lock of its own: it is compared at each look and read again
 * when it has changed. A thread that cannot have had the GIL since a look that held is where it
 * was, and is not copied.
 *
 * There are four proofs, of which a look needs those that its threads need:
 *
 *   dead       Nothing of it runs: a core file, a tape, a process that somebody has stopped. So it
 *              is as long as snapshot_hold_target() was not called.
 *   preempted  The thread that runs was preempted by us, who hold its CPU (sampler/preempt.h), and
 *              its witness (sampler/witness.h) shows that it executed nothing in user mode.
 *   covered    Frames, data-stack chunks, generators and code objects change only under the GIL. So
 *              if the thread that had it last stood still, and nobody took it (last_holder and
 *              switch_number are set in take_gil() before it returns), those of all threads stood
 *              still. Its last holder needs a proof also when the GIL is free: it may take it again
 *              unnoticed. The list of thread states is under another lock.
 *   waiting    A thread that neither had the GIL at the two ends of a look nor in between is where
 *              it was, whoever else ran. Between looks, too: it need not be read again.
 *
 * The last two do not hold for states that a thread may swap without the GIL's words telling, as
 * those of several interpreters up to 3.12: there each thread needs a proof of its own
 * (snapshot_may_swap()).
 *
 * All of that is of the threads that the thread states name, and a state may be run by another one,
 * which sampler/own_stack.h tells from 3.10 on. Where it cannot, that is evidence and no proof: a
 * state that moves within a look, though its thread stood still, is not trusted for a while.
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
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/gil.h"
#include "sampler/look_memory.h"
#include "sampler/own_stack.h"
#include "sampler/preempt.h"
#include "sampler/witness.h"

/* What a look was worth. */
enum instant_verdict {
	INSTANT_HELD,	/* everything that was read is of one instant */
	INSTANT_MOVED,	/* some thread may have run */
	INSTANT_LOCKED, /* the sampler slept: on the target's memory map, or on a page of it */
};

/* A GIL as the looks see it. */
struct instant_gil {
	struct gil_place place;
	struct gil now;	 /* at the beginning of this look */
	struct gil told; /* of the last look in which it stood, by which threads are known */
	uint32_t seal;	 /* of the look: its words */
	bool stood;	 /* behind a look: nobody took it who had not had it last */
};

/* A thread as the looks see it. All zero it is new. */
struct instant_thread {
	struct witness witness;
	pid_t witness_tid; /* whom it was opened for */
	bool has_witness;
	bool is_excused; /* set by the user: looks need not prove it, so its witness is not called */
	bool is_watched; /* the witness was there from the beginning of this look */
	bool stood;	 /* behind a look: the witness has shown that it stood still */
	bool is_own;	 /* set by the user in a look: nobody else could run the state */
	bool is_foreign; /* set by the user in a look: another thread runs the state */
	bool is_untold;	 /* set by the user in a look: who runs it has to be found out first */
	bool has_moved;	 /* set by the user in a look: the state is not where it was found */
	uint64_t foreign_until; /* the look before which another thread is taken to run the state */
	bool slept; /* of a late look: it has run since the last one, and gone to sleep before this */
	uint64_t late_runs;   /* its run count at the last late look; 0: not read */
	uint64_t runner_look; /* the last one in which it could run: its witness is needed */
	bool is_known; /* the user has handed on where it is: snapshot_know(); may be reset */
	uint64_t known_cpu_ns; /* its task clock when the user had its stack; 0: not known */
};

struct instant {
	struct look_memory look;
	bool is_dead;		    /* nothing runs: no proof is needed */
	struct witness_means means; /* if not */
	struct preempt *preempt;    /* borrowed; NULL: no CPU is held */
	held_cpus held;
	uint64_t nr_looks;
	bool slept;	     /* behind a look: the sampler went to sleep in it */
	bool is_late;	     /* set by the user: this look begins so late that it may have waited */
	bool gil_distrusted; /* set by the user: a thread moved without having had it */
	uint64_t nr_stood;   /* so often a thread that could run was found to stand still */
	uint64_t nr_foreign; /* and so often another one to run its state */
	uint64_t nr_away;    /* looks that were lost as a thread was on a CPU that we may not use */
	uint64_t away_look;  /* the last of them */
};

struct snapshot_thread {
	struct thread_ref ref;
	uint32_t slot;	/* its place in the user's own array; reused after it ended */
	pid_t tid;	/* in our PID namespace, set by the user; 0: not known (yet) */
	bool is_new;	/* not seen in a look yet; the user resets it */
	bool copied;	/* state was read and is still the thread's */
	bool unchanged; /* the GIL proves that it is where it was: nothing of it was read */
	bool checked;	/* copied only to see whether the GIL tells the truth */
	bool seen;	/* used while the list is refreshed */
	bool has_ended; /* its witness says so: the state is another one's, or gone */
	bool holds_gil;
	bool held;		/* behind a look: what was read of it is of one instant */
	bool slept;		/* behind a late look: who runs there has gone to sleep meanwhile */
	struct own_stack stack; /* the user's */
	struct instant_thread proof;
	struct code_clock clock; /* of its interpreter, at this look */
	uint8_t state[THREAD_STATE_MAX_BYTES];
};

struct snapshot_interpreter {
	struct interpreter_ref ref;
	struct code_clock clock; /* of this look */
	bool has_own_gil;	 /* else it shares that of the main one */
	struct instant_gil gil;
	uint32_t head_seal;	  /* of the look: the head of the list of threads */
	uint32_t generation_seal; /* of the look: the counters of code, where there are any */
	uint32_t version_seal;
	bool held;		   /* behind a look: nobody ran who could have had the GIL */
	bool slept;		   /* behind a late look: its last holder has gone to sleep */
	bool collecting;	   /* garbage, some thread of it */
	remote_addr gc_frame_addr; /* 3.15: where that was begun, or 0 */
	struct thread_name_hints name_hints; /* the user's, kept while it is listed */
};

struct snapshot {
	struct instant instant;
	struct remote_memory *memory; /* that of the instant: everything is read through it */
	const struct py_build *build; /* borrowed */
	remote_addr runtime_addr;
	remote_addr current_thread_addr;   /* 3.6: the variable that names the GIL's holder; or 0 */
	const volatile sig_atomic_t *stop; /* borrowed, may be NULL: once set, long work ends */
	struct snapshot_interpreter *interpreters;
	size_t nr_interpreters;
	struct snapshot_thread **threads; /* each allocated; owned */
	size_t nr_threads;
	uint32_t nr_slots;     /* one above the highest slot that was given out */
	uint64_t nr_refreshes; /* thread lists taken over */
	bool stale;	       /* the thread list has changed: refresh before the next look */
	bool is_still;	       /* the memory does not change, and may lack pieces */
	int list_err;	       /* of that: why the lists could not be read to their ends, or 0 */

	const struct snapshot_thread *only; /* the look under way is at this thread; NULL: at all */
};

/*
 * A snapshot of nothing yet; memory and build are borrowed until snapshot_done(), which frees the
 * threads, and accepts one that is all zero.
 */
void snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr);
void snapshot_done(struct snapshot *snapshot);

/* From now on the target runs, and this is what there is to prove with. */
void snapshot_hold_target(struct snapshot *snapshot, const struct witness_means *means);

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
 * read. What snapshot->memory reads until snapshot_end() is of that look. Threads whose state could
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

/*
 * Whether another thread runs a state in the look under way, which is counted, or may do so: by
 * what the user has set.
 */
bool snapshot_finds_foreign(struct snapshot *snapshot, struct snapshot_thread *thread);

/* The user has the stack of a thread as the last look has found it. */
void snapshot_know(struct snapshot_thread *thread);

/*
 * Behind a look whose threads were handed on, or are not known any more: those that are, are known
 * by what their GILs said in it.
 */
void snapshot_tell(struct snapshot *snapshot);

/*
 * Whether a thread state may be run by another thread than the one that it names, and without
 * having taken the GIL itself: to 3.12 that is how code in another interpreter is called.
 */
bool snapshot_may_swap(const struct snapshot *snapshot);

/* Whether a thread might run while the last look lasted, by what its GIL said. */
bool snapshot_may_run(const struct snapshot *snapshot, const struct snapshot_thread *thread);

/* The GIL that a thread uses. */
const struct instant_gil *snapshot_gil(const struct snapshot *snapshot,
				       const struct snapshot_thread *thread);

/* Where the word is that tells whether an interpreter collects garbage; 0: none does. */
remote_addr snapshot_collector_addr(const struct snapshot *snapshot,
				    const struct snapshot_interpreter *interpreter);

/*
 * Have the words of an interrupt be those of a look: what the GIL of a thread, and the word at its
 * snapshot_collector_addr(), said then.
 */
void snapshot_take_words(struct snapshot *snapshot, struct snapshot_thread *thread,
			 const uint8_t *gil_words, uint64_t collector);

/* Whether a thread had its GIL at the last look, be it one that was at another thread only. */
bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread);
