/* SPDX-License-Identifier: MIT */
/*
 * Proof that what a look reads of the target is of one instant: instant_begin(), reads and walks
 * through instant.look.memory, instant_end(). What cannot be proven is dropped by whoever looked,
 * and counted; it is never looked at again because of what it showed.
 *
 * There are four proofs, of which a look needs those that its threads need:
 *
 *   dead       Nothing of it runs: a core file, a tape, a process that somebody has stopped. So it
 *              is as long as instant_hold_target() was not called.
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
 * The last two do not hold for states that a thread may swap without the GIL's words telling, as those of
 * several interpreters up to 3.12: there each thread needs a proof of its own (snapshot_may_swap()).
 *
 * All of that is of the threads that the thread states name, and a state may be run by another one,
 * which sampler/own_stack.h tells from 3.10 on. Where it cannot, that is evidence and no proof: a state
 * that moves within a look, though its thread stood still, is not trusted for a while.
 *
 * A sample that is taken in the target's own interrupt is of one instant by itself.
 *
 * Source: CPython take_gil() and drop_gil(), Python/ceval_gil.c (to 3.11: ceval_gil.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"
#include "sampler/gil.h"
#include "sampler/look_memory.h"
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
	bool is_known;	      /* the user has handed on where it is: instant_know(); may be reset */
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

/* Of a dead target, until instant_hold_target(). The memory is borrowed until instant_done(). */
void instant_init(struct instant *instant, struct remote_memory *memory);
void instant_done(struct instant *instant);

/* From now on the target runs, and this is what there is to prove with. */
void instant_hold_target(struct instant *instant, const struct witness_means *means);

/*
 * Take the CPUs that are to be held, for a look that instant_end() ends, also one that could not
 * begin.
 */
void instant_take_cpus(struct instant *instant);

/*
 * Before it begins: have a thread's witness called, if it could run in one of the last looks. Its
 * words are the outermost of all that is read, so threads are named first. thread_pointer and tid
 * as for witness_open(). 0 or -ENOMEM.
 */
int instant_watch_thread(struct instant *instant, struct instant_thread *thread,
			 uint64_t thread_pointer, pid_t tid);

/* Have the words of a GIL sealed, of which there is a place. 0 or -ENOMEM. */
int instant_watch_gil(struct instant *instant, struct instant_gil *gil);

/* Begin to read. 0; -ENOMEM, -ESRCH, -EPERM. */
int instant_begin(struct instant *instant);

/* Behind instant_begin(): what the GIL says, be there one or not. */
void instant_read_gil(struct instant *instant, struct instant_gil *gil);

/* A thread may run in this look. Whether its witness has been called. */
bool instant_note_runner(struct instant *instant, struct instant_thread *thread);

/* Whether its own clock tells that a thread is where it was when it was known. */
bool instant_clock_stands(const struct instant *instant, const struct instant_thread *thread);

/*
 * Whether its GIL tells that the thread whose state is at thread_addr is where it was at the last
 * look that held.
 */
bool instant_gil_tells(const struct instant *instant, const struct instant_gil *gil,
		       const struct instant_thread *thread, remote_addr thread_addr);

/* End reading. 0; -ENOMEM, -ESRCH, -EPERM: the look has proven nothing. */
int instant_end(struct instant *instant);

/*
 * Behind instant_end(), for each thread that could run: what has to be read before it is let go. tid:
 * in our PID namespace; 0: not known.
 */
void instant_end_thread(struct instant *instant, struct instant_thread *thread, pid_t tid);

/* Behind that: give back the CPUs. */
void instant_release_cpus(struct instant *instant);

/*
 * Behind the look: sets whether a thread that could run stood still, and has the looks to come hold
 * the CPU where it is. tid as above.
 */
void instant_judge_thread(struct instant *instant, struct instant_thread *thread, pid_t tid);

/* Whether another thread runs a state in this look, which is counted, or may do so. */
bool instant_finds_foreign(struct instant *instant, struct instant_thread *thread);

/* Whether thread states are run by other threads than those that they name, and not just once. */
static inline bool instant_is_foreign(const struct instant *instant)
{
	return instant->nr_foreign > 1 && instant->nr_foreign >= instant->nr_stood / 10;
}

/* Behind the look: sets whether a GIL was taken by nobody who had not had it last. */
void instant_judge_gil(struct instant *instant, struct instant_gil *gil);

/* The user has the stack of a thread as this look has found it. */
void instant_know(struct instant_thread *thread);

/* Free what a thread holds. It accepts one that is all zero. */
void instant_thread_done(struct instant_thread *thread);
