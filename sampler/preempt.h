/* SPDX-License-Identifier: MIT */
/*
 * Holds the CPUs on which the target runs, for the duration of a look. The sampler's thread is
 * pinned (procmem/sched/cpu_pin.h) to one of them before its timer fires. When it wakes up
 * there the kernel preempts the target, as for any other wake-up. Nothing is stopped.
 *
 * If the target's running threads were found on several CPUs lately, as in programs that pass the
 * GIL around, each of the other CPUs gets a guard: a thread of pysample that wakes there at the
 * same time and does nothing until the look is over. So a look treats these CPUs alike, whichever
 * of them the target runs on. Moving to the CPU of the GIL's holder after the timer has fired
 * would favour long holders (docs/evidence/instant.md has the figures).
 *
 * A CPU counts as held only if the thread there never left it, by its own switch counts.
 *
 * Source: getrusage(2), RUSAGE_THREAD (ru_nvcsw, ru_nivcsw); kernel/sched/core.c (__schedule(),
 * which counts each switch); kernel/sched/fair.c (wakeup_preempt_fair(), and slices by
 * sched_setattr()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/sched/cpu_pin.h"
#include "sampler/witness.h"

/* Limit on the other CPUs that a look holds: programs that pass a lock around use two or three. */
enum { MAX_GUARDS = 7 };

/* A CPU where a thread that may run was found. */
struct followed_cpu {
	uint32_t cpu;
	uint64_t found_look;
};

/*
 * The CPUs where a target's threads that may run were found lately. All zero: none. The members
 * are private.
 */
struct followed_cpus {
	struct followed_cpu cpus[MAX_GUARDS + 1]; /* the one found last is the first */
	uint32_t nr;
	uint32_t pinned_cpu; /* where the looks wake up; valid if is_pinned */
	bool is_pinned;
	/* number of looks in a row that found cpus[0] to be another CPU than pinned_cpu */
	uint32_t nr_moved_looks;
	uint64_t nr_looks;
};

/* Holds CPUs for the looks at any number of targets. */
struct preempt;

/*
 * Create a struct preempt for the calling thread, which must make all other calls, too.
 * preempt_destroy() restores the thread's affinity and slice, and accepts NULL. Returns 0;
 * -ENOMEM, or an error of cpu_pin_open().
 */
int preempt_create(struct preempt **ret_preempt);
void preempt_destroy(struct preempt *preempt);

/*
 * A thread that may run was found on a CPU (CPU_NONE: unknown): the next looks hold that CPU.
 * Returns false if our affinity does not allow it.
 */
bool preempt_follow(const struct preempt *preempt, struct followed_cpus *followed, uint32_t cpu);

/* Whether thread tid may run on any CPU that can be held. */
bool preempt_can_reach(const struct preempt *preempt, pid_t tid);

/* Move to the CPU of a target's next look, whenever that is. */
void preempt_move(struct preempt *preempt, struct followed_cpus *followed);

/* The same for a look at time_ns, for which the guards wake up, too. The caller sleeps until it. */
void preempt_aim(struct preempt *preempt, struct followed_cpus *followed, uint64_t time_ns);

/*
 * Before a look: announce the earliest time of the next one. Guards sleep until then as soon as
 * this look is over. So they are not woken in between, just after they were on their CPUs: a
 * thread that is woken then may have to wait for the scheduler's next tick.
 */
void preempt_set_next(struct preempt *preempt, uint64_t time_ns);

/*
 * Begin to hold for a look at a target; waits up to 100 µs for guards. *ret_held: the CPUs held so
 * far; one from CPU_SETSIZE on has no bit.
 */
void preempt_hold(struct preempt *preempt, struct followed_cpus *followed, cpu_set_t *ret_held);

/*
 * Stop holding, as soon as everything has been read, and wait up to 100 µs for each guard to
 * report whether it stayed. *ret_held: the CPUs held throughout. Returns true if the calling
 * thread went to sleep meanwhile, which only a lock of the target's memory causes.
 */
bool preempt_release(struct preempt *preempt, cpu_set_t *ret_held);
