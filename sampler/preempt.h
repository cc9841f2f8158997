/* SPDX-License-Identifier: MIT */
/*
 * Holding the CPUs on which the target runs, for the time of a look. The sampler's thread has its
 * seat (procmem/sched/cpu_seat.h) on one of them before its timer fires: when it wakes there the kernel
 * preempts the target, as it does for the wake-up of any other program. Nobody is stopped.
 *
 * Where the target's running threads were found on several CPUs of late, as of programs that hand
 * the GIL on, a guard takes each of the others: a thread of ours that wakes there at the same time
 * and does nothing until the look is over. So it makes no difference to a look on which of them the
 * target runs. To go where the GIL's holder is once the timer has fired would favour those that
 * hold it for long (docs/architecture.md has the figures of a prototype).
 *
 * A CPU counts as held only if the thread of ours there never left it, by its own switch counts.
 *
 * Source: getrusage(2), RUSAGE_THREAD (ru_nvcsw, ru_nivcsw); kernel/sched/core.c (__schedule(),
 * which counts each switch); kernel/sched/fair.c (wakeup_preempt_fair(), and slices by
 * sched_setattr()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/sched/cpu_seat.h"
#include "sampler/ticker.h"
#include "sampler/witness.h"

struct preempt;

/*
 * Take the calling thread's seat; all other calls have to come from it. 0; -ENOMEM, or an error of
 * cpu_seat_open(). preempt_destroy() gives back what was changed: affinity and slice. It accepts
 * NULL.
 */
int preempt_create(struct preempt **ret_preempt);
void preempt_destroy(struct preempt *preempt);

/*
 * A thread that may run was found on a CPU (CPU_NONE: nobody knows where), which the next looks
 * hold, if it is one of ours. False: it is not, by our affinity.
 */
bool preempt_follow(struct preempt *preempt, uint32_t cpu);

/* Whether thread tid may run on any CPU that can be held. */
bool preempt_can_meet(const struct preempt *preempt, pid_t tid);

/* Go to the seat, for those who sleep in another way than by preempt_clock(). */
void preempt_go(struct preempt *preempt);

/* A clock whose sleep goes to the seat first, and has the guards wake at the same time. */
struct ticker_clock preempt_clock(struct preempt *preempt);

/*
 * Called before a look: the time of the next one, which may come later but not earlier. Guards go
 * to sleep until then as soon as this look is over. They need not be woken in between, which would
 * come just after they were on their CPUs: such a thread may have to wait for the scheduler's next
 * tick.
 */
void preempt_announce(struct preempt *preempt, uint64_t time_ns);

/* Begin to hold: waits up to 100 µs for guards. Sets the CPUs that are held so far. */
void preempt_hold(struct preempt *preempt, held_cpus *ret_held);

/*
 * Stop holding, as soon as all has been read, and wait up to 100 µs for each guard to say whether
 * it stayed. Sets the CPUs that were held throughout. True if the calling thread went to sleep
 * meanwhile, which only a lock of the target's memory causes.
 */
bool preempt_release(struct preempt *preempt, held_cpus *ret_held);
