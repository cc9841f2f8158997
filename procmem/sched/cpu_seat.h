/* SPDX-License-Identifier: MIT */
/*
 * Where the calling thread runs, and whether it stayed there. While it holds a CPU no other
 * thread runs on it, so whatever was on that CPU stands still.
 *
 * The seat is one CPU out of those that the thread was allowed to use when it was opened. Its
 * slice is how long the scheduler lets the thread run once it was woken; a short one also makes
 * the scheduler preempt whoever runs there as soon as the thread wakes (since Linux 6.12). The
 * policy and the nice value stay as they are.
 *
 * Source: sched_setaffinity(2), sched_setattr(2), getrusage(2) (RUSAGE_THREAD); kernel/sched/fair.c
 * (PREEMPT_SHORT: a waking entity with a shorter slice preempts, commit 857b158dc5e8).
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"

/* No CPU has this number. */
#define CPU_NONE UINT32_MAX

/* All zero it is closed. */
struct cpu_seat {
	bool is_open;
	cpu_set_t usual;	 /* the CPUs the thread could use before */
	uint32_t cpu;		 /* the seat; CPU_NONE: any of usual */
	uint64_t usual_slice_ns; /* the thread had before */
	uint64_t slice_ns;	 /* asked for; 0: the scheduler's own */
	bool slice_is_refused;	 /* this kernel has no slices of one's own */
};

/* How often the calling thread has left its CPU so far. */
struct cpu_leaves {
	uint64_t waited;    /* it went to sleep */
	uint64_t preempted; /* another thread took the CPU */
};

/*
 * Open the seat of the calling thread, from which all other calls have to come. It stays where it
 * is. 0, or the errno of a system call: the kernel has more CPUs than CPU_SETSIZE.
 * cpu_seat_close() has the thread use its usual CPUs again; it accepts a closed seat.
 */
int cpu_seat_open(struct cpu_seat *ret_seat);
void cpu_seat_close(struct cpu_seat *seat);

/*
 * Move to a CPU, or to any of the usual ones (CPU_NONE). Nothing is done if the seat is there. 0;
 * -EPERM: the CPU is none of the usual ones, or may not be used any more; the seat is then
 * CPU_NONE.
 */
int cpu_seat_move(struct cpu_seat *seat, uint32_t cpu);

/*
 * Ask for a slice that is not shorter than look_ns, nor more than three times as long, but for its
 * limits. Of two threads that have had their share the scheduler prefers the one whose slice ends
 * first, so a long slice makes the wake-ups of the calling thread late. Where the kernel has none
 * (before 6.12) nothing happens.
 */
void cpu_seat_fit_slice(struct cpu_seat *seat, uint64_t look_ns);

/* The CPU the calling thread runs on. */
uint32_t cpu_seat_here(void);

/* Whether thread tid may use any of the CPUs that the seat may be on; true if that is not known. */
bool cpu_seat_can_meet(const struct cpu_seat *seat, pid_t tid);

/* How often the calling thread has left its CPU; UINT64_MAX: not known. One system call. */
struct cpu_leaves cpu_leaves_read(void);

/* Whether a thread with these counts before and after has not left its CPU in between. */
static inline bool cpu_has_stayed(struct cpu_leaves before, struct cpu_leaves after)
{
	return before.waited != UINT64_MAX && before.waited == after.waited &&
	       before.preempted == after.preempted;
}

/* Whether the calling thread has a real-time policy: it takes any CPU at once but a higher one's. */
bool cpu_seat_is_real_time(void);

/* Whether a real-time policy of thread tid keeps the calling thread from ever taking its CPU. */
bool cpu_seat_is_outranked(pid_t tid);

/*
 * Whether the scheduler lets the calling thread take the CPU of thread tid: it is not outranked, nor
 * does a better nice value put that thread first, or that we run only when nobody else does
 * (SCHED_IDLE).
 */
bool cpu_seat_may_preempt(pid_t tid);
