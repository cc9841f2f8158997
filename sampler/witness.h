/* SPDX-License-Identifier: MIT */
/*
 * Proof that one thread of the target executed no instruction in user mode during a look.
 *
 * While the sampler holds a CPU (procmem/sched/cpu_pin.h: its own switch counts show that it
 * never left) no other thread runs there. It remains to be shown that the thread is one of those
 * that this kept from running. There are three ways, tried in this order:
 *
 * WITNESS_RSEQ   The cpu_id of the thread's restartable-sequences area (struct rseq_place) is a
 *                CPU that was held throughout, in the first and in the last piece of memory that
 *                the look read. The kernel stores cpu_id before it returns to user mode on
 *                another CPU, so the thread did not get there; and to come back and store the old
 *                number again it would have needed the held CPU. No system call; x86-64 with
 *                glibc 2.35 or newer. A thread in a system call may go on in the kernel, where it
 *                changes no frame.
 * WITNESS_CLOCK  The thread's task clock (perf_event_open(2)) is equal before and after: the
 *                thread had no CPU at all. 0.5 µs each, and a few ns for a thread that has
 *                waited since the last looks (cpu_clock.h). An equal clock of the *process* is
 *                no proof: it is updated at switches and ticks only. Nor is the clock of a
 *                thread that has ended: its state may belong to another thread now.
 * WITNESS_RUNS   First the run count is read, then the CPU of the thread, which is a held
 *                one: so the thread is not running now. An equal count after the look shows that
 *                it was not switched in since. An equal count alone proves nothing: a thread that
 *                runs all the time has one. About 12 µs.
 *
 * Source: kernel/rseq.c, kernel/events/core.c (task_clock_event_read()), kernel/sched/stats.h
 * (sched_info_arrive()). Each way was checked against the others and against a counter that the
 * target increments (docs/evidence/proofs.md).
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/process.h"
#include "procmem/sched/cpu_clock.h"
#include "procmem/sched/run_count.h"
#include "sampler/look_memory.h"
#include "symbols/elf/image_source.h"

enum witness_kind { WITNESS_NONE, WITNESS_RSEQ, WITNESS_CLOCK, WITNESS_RUNS };

/*
 * Where the threads of a process keep their restartable-sequences area. All zero: unknown, or
 * none. The area's cpu_id is the CPU on which the thread last returned to user mode. Whenever the
 * thread was moved or switched in, the kernel writes it before the next instruction in user mode.
 *
 * glibc (since 2.35) registers an area for each thread, at __rseq_offset bytes from the thread
 * pointer, which on x86-64 is the pthread_t. Its size is __rseq_size, 0 if there is none. Both
 * are variables of the target's own ld.so: the offset is a constant up to 2.40 and depends on the
 * program's TLS from 2.41 on. musl registers none.
 *
 * Source: rseq(2), include/uapi/linux/rseq.h, kernel/rseq.c (rseq_update_cpu_node_id(), called by
 * rseq_handle_notify_resume()); glibc sysdeps/unix/sysv/linux/rseq-internal.h.
 */
struct rseq_place {
	bool is_known;
	int64_t cpu_id_offset; /* from the thread pointer to cpu_id, a u32 */
};

/*
 * Find the place. If there is none, or it cannot be found, is_known is false; that is no error.
 * Nothing is kept.
 */
struct rseq_place rseq_place_find(struct remote_memory *memory, const struct maps *maps,
				  struct image_source *images);

/* All zero: closed. */
struct witness {
	enum witness_kind kind;
	remote_addr cpu_id_addr; /* WITNESS_RSEQ */
	uint32_t seal;		 /* of cpu_id in this look */
	struct cpu_clock clock;	 /* WITNESS_CLOCK */
	struct run_count runs;	 /* open if has_runs */
	bool has_runs;
	/* The clock or the count, before and after the look; UINT64_MAX: not read. */
	uint64_t before, after;
	bool has_ended; /* after a look, if ids_may_be_reused: the thread has ended */
	uint32_t cpu;	/* where the thread was last found; CPU_NONE: unknown */
};

/* What there is to prove with. */
struct witness_means {
	const struct process *process; /* borrowed */
	struct rseq_place rseq;
	/*
	 * Each thread needs a proof of its own, even if it waits on a CPU that is not held, so
	 * WITNESS_CLOCK is tried first. This is the case without a GIL, with a free GIL of 3.6,
	 * if states may be swapped (sampler/snapshot.h), and if no CPU is held.
	 */
	bool prefers_clock;
	/*
	 * Nothing distinguishes a thread from one that ended before it (3.6), whose clock stands
	 * still: check that the thread still exists.
	 */
	bool ids_may_be_reused;
};

/*
 * Open a witness for a thread, by its thread pointer (with glibc its pthread_t) and its id in our
 * PID namespace; either is 0 if unknown. If none can be had, kind is WITNESS_NONE.
 * witness_close() accepts a closed one.
 */
void witness_open(const struct witness_means *means, uint64_t thread_pointer, pid_t tid,
		  struct witness *ret_witness);
void witness_close(struct witness *witness);

/* Before the look begins: seal the witness's word, or read its number. Returns 0 or -ENOMEM. */
int witness_begin(struct witness *witness, struct look_memory *look, const cpu_set_t *held);

/*
 * Read the number again as soon as everything in the look has been read, while the CPUs are still
 * held, since a released thread gets a CPU at once. tid as in witness_open().
 */
void witness_end(struct witness *witness, const struct witness_means *means, pid_t tid);

/*
 * After the look: whether the thread stood still, given the CPUs that were held throughout. Sets
 * witness->cpu, if it is known.
 */
bool witness_stood_still(struct witness *witness, const struct look_memory *look,
			 const cpu_set_t *held);

/* The thread's task clock at the beginning of the look, plus 1; 0: not read. */
uint64_t witness_cpu_ns(const struct witness *witness);

/*
 * Whether the thread has had a CPU since the last look, without a system call. False if that is
 * unknown.
 */
bool witness_has_run(const struct witness *witness);

/* The ways in which a thread can be proven to have stood still. */
struct witness_proofs {
	bool has_rseq;	/* the C library's word for the thread's CPU */
	bool has_clock; /* the kernel's task clock */
	bool has_runs;	/* the kernel's count of how often the thread was switched in */
};
struct witness_proofs witness_probe(const struct witness_means *means, pid_t tid);

/* State and CPU of the thread, from the witness's files. Errors of run_count_read_stat(). */
int witness_now(struct witness *witness, const struct witness_means *means, pid_t tid,
		struct thread_stat *ret_stat);
