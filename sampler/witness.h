/* SPDX-License-Identifier: MIT */
/*
 * Proof that one thread of the target executed no instruction in user mode during a look.
 *
 * While the sampler holds a CPU (procmem/sched/cpu_seat.h: its own switch counts show that it never left)
 * no other thread runs there. What is left to show is that the thread is one of those that cannot
 * run because of that. There are three ways, in the order in which they are tried:
 *
 * WITNESS_RSEQ   The cpu_id of the thread's restartable-sequences area (struct rseq_place) is a CPU
 *                that was held throughout, in the first and in the last piece of memory that the
 *                look read. The kernel stores cpu_id before it returns to user mode on another CPU,
 *                so the thread did not get there; and to come back and store the old number again it
 *                would have needed the CPU that was held. No system call; x86-64 with
 *                glibc 2.35 or newer. A thread in a system call may run on in the kernel: what it
 *                changes there is not a frame.
 * WITNESS_CLOCK  The thread's task clock (perf_event_open(2)) is equal before and after: the thread
 *                had no CPU at all, on whatever CPU. 0.5 µs each. An equal clock of the *process* is
 *                no proof: it is brought up to date at switches and ticks only. Nor is one of a
 *                thread that has ended: its state may be another one's by now.
 * WITNESS_RUNS   The run count is read, then the processor that the thread is on, which is one that
 *                is held: so it does not run by then. An equal count behind the look shows that it
 *                was not switched in since. An equal count alone proves nothing: a thread that runs
 *                all the time has one. Some 12 µs.
 *
 * Source: kernel/rseq.c, kernel/events/core.c (task_clock_event_read()), kernel/sched/stats.h
 * (sched_info_arrive()); each way was held against the others and against a counter that the target
 * increments (docs/benchmarks.md, "The proofs of the instant").
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/process.h"
#include "procmem/sched/cpu_clock.h"
#include "procmem/sched/task_runs.h"
#include "sampler/look_memory.h"
#include "symbols/elf/image_source.h"

enum witness_kind { WITNESS_NONE, WITNESS_RSEQ, WITNESS_CLOCK, WITNESS_RUNS };

/* The CPUs that the sampler holds, a bit each for the first CPU_SETSIZE. */
typedef cpu_set_t held_cpus;

/*
 * Where the threads of a process keep their restartable-sequences area. All zero: it is not known,
 * or there is none. The area's cpu_id is the CPU on which the thread last returned to user mode.
 * The kernel writes it before the thread's next instruction in user mode, whenever the thread was
 * moved or switched in.
 *
 * glibc registers an area for each thread (since 2.35) and tells where: __rseq_offset bytes from
 * the thread pointer, which on x86-64 is the pthread_t, __rseq_size bytes, 0 if it registered none.
 * Both are variables of the target's own ld.so: the offset is a constant up to 2.40 and depends on
 * the program's TLS from 2.41 on. musl registers none.
 *
 * Source: rseq(2), include/uapi/linux/rseq.h, kernel/rseq.c (rseq_update_cpu_node_id(), called by
 * rseq_handle_notify_resume()); glibc sysdeps/unix/sysv/linux/rseq-internal.h.
 */
struct rseq_place {
	bool is_known;
	int64_t cpu_id_offset; /* of the word cpu_id, a u32, from the thread pointer */
};

/*
 * Find the place. That there is none, or that it cannot be told, is no error: is_known is false
 * then. Nothing is kept.
 */
struct rseq_place rseq_place_find(struct remote_memory *memory, const struct maps *maps,
				  struct image_source *images);

/* All zero it is closed. */
struct witness {
	enum witness_kind kind;
	remote_addr cpu_id_addr; /* WITNESS_RSEQ */
	uint32_t seal;		 /* of the look: where that word is */
	struct cpu_clock clock;	 /* WITNESS_CLOCK */
	struct task_runs runs;	 /* WITNESS_RUNS, and whenever is_open */
	bool has_runs;
	/* The clock, or the count, at the ends of the look; UINT64_MAX: it was not read. */
	uint64_t before, after;
	bool has_ended; /* behind a look, if may_be_followed: the thread has */
	uint32_t cpu;	/* where the thread was last found; CPU_NONE: not known */
};

/* What there is to prove with. */
struct witness_means {
	const struct process *process; /* borrowed */
	struct rseq_place rseq;
	/*
	 * Each thread has to be proven by itself, also those that wait on CPUs that nobody holds,
	 * so WITNESS_CLOCK is tried first: without a GIL, with a free one of 3.6, where states may
	 * be swapped (sampler/snapshot.h), and where no CPU is held.
	 */
	bool prefers_clock;
	/*
	 * Nothing tells a thread from one that has ended before it (3.6), whose clock stands still:
	 * it is asked whether the thread is still there.
	 */
	bool may_be_followed;
};

/*
 * Open a witness of the thread with that thread pointer (a pthread_t is one with glibc; 0: not
 * known) and that id in our PID namespace (0: not known). One that cannot be had is WITNESS_NONE.
 * witness_close() accepts a closed one.
 */
void witness_open(const struct witness_means *means, uint64_t thread_pointer, pid_t tid,
		  struct witness *ret_witness);
void witness_close(struct witness *witness);

/* Before the look begins: have its word sealed, or read its number. 0 or -ENOMEM. */
int witness_begin(struct witness *witness, struct look_memory *look, const held_cpus *held);

/*
 * Read the number again as soon as all of the look has been read: while the CPUs are held, since a
 * thread that is let go is given a CPU at once. tid as above.
 */
void witness_end(struct witness *witness, const struct witness_means *means, pid_t tid);

/*
 * Behind the look: whether the thread stood still, where held CPUs were held throughout. Sets
 * witness->cpu, as far as that is known.
 */
bool witness_stood(struct witness *witness, const struct look_memory *look, const held_cpus *held);

/* The thread's task clock at the beginning of the look; 0 if it was not read. */
uint64_t witness_cpu_ns(const struct witness *witness);

/* In what ways a thread can be proven to have stood still. */
struct witness_proofs {
	bool has_rseq;	/* the C library's word for the CPU that a thread is on */
	bool has_clock; /* the kernel's clock of a task */
	bool has_runs;	/* the kernel's count of how often a task was given a CPU */
};
struct witness_proofs witness_try(const struct witness_means *means, pid_t tid);

/* State and CPU of the thread, by the files of the witness. Errors of task_runs_now(). */
int witness_now(struct witness *witness, const struct witness_means *means, pid_t tid,
		struct task_now *ret_now);
