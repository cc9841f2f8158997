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
#include "sampler/ticker.h"
#include "sampler/witness.h"

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
bool preempt_follow(struct preempt *preempt, uint32_t cpu);

/* Whether thread tid may run on any CPU that can be held. */
bool preempt_can_reach(const struct preempt *preempt, pid_t tid);

/* Move to the CPU of the next look, for callers that do not sleep by preempt_clock(). */
void preempt_move(struct preempt *preempt);

/* A clock that moves to the CPU of the next look before it sleeps, and wakes the guards with us. */
struct ticker_clock preempt_clock(struct preempt *preempt);

/*
 * Before a look: announce the earliest time of the next one. Guards sleep until then as soon as
 * this look is over. So they are not woken in between, just after they were on their CPUs: a
 * thread that is woken then may have to wait for the scheduler's next tick.
 */
void preempt_set_next(struct preempt *preempt, uint64_t time_ns);

/*
 * Begin to hold; waits up to 100 µs for guards. *ret_held: the CPUs held so far; one from
 * CPU_SETSIZE on has no bit.
 */
void preempt_hold(struct preempt *preempt, cpu_set_t *ret_held);

/*
 * Stop holding, as soon as everything has been read, and wait up to 100 µs for each guard to
 * report whether it stayed. *ret_held: the CPUs held throughout. Returns true if the calling
 * thread went to sleep meanwhile, which only a lock of the target's memory causes.
 */
bool preempt_release(struct preempt *preempt, cpu_set_t *ret_held);
