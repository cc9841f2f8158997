/* SPDX-License-Identifier: MIT */
/*
 * The seat of the calling thread: the CPU on which it runs, and whether it stayed there. While the
 * thread holds a CPU no other thread runs on it, so whatever ran on that CPU stands still.
 *
 * The seat is one of the CPUs that the thread was allowed to use when the seat was opened. Its
 * slice is how long the scheduler lets the thread run after a wake-up. Since Linux 6.12 a short
 * slice also makes the waking thread preempt whatever runs there at once. The policy and the nice
 * value do not change.
 *
 * Source: sched_setaffinity(2), sched_setattr(2), getrusage(2) (RUSAGE_THREAD);
 * kernel/sched/fair.c (PREEMPT_SHORT: a waking entity with a shorter slice preempts, commit
 * 857b158dc5e8).
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"

/* No CPU has this number. */
#define CPU_NONE UINT32_MAX

/* A zero-initialised seat is closed. */
struct cpu_seat {
	bool is_open;
	cpu_set_t usual;	 /* the CPUs that the thread may use when the seat is closed */
	uint32_t cpu;		 /* the seat; CPU_NONE: any of usual */
	uint64_t usual_slice_ns; /* the thread's slice before the seat was opened */
	uint64_t slice_ns;	 /* requested; 0: the scheduler's default */
	bool slice_is_refused;	 /* this kernel has no per-thread slices */
};

/* How often the calling thread has left its CPU so far. */
struct cpu_leaves {
	uint64_t waited;    /* it went to sleep */
	uint64_t preempted; /* another thread took the CPU */
};

/*
 * Open the seat of the calling thread, which must make all other calls, too. The thread does not
 * move. Returns 0, or the errno of a system call: the kernel has more CPUs than CPU_SETSIZE.
 * cpu_seat_close() lets the thread use its usual CPUs again; it accepts a closed seat.
 */
int cpu_seat_open(struct cpu_seat *ret_seat);
void cpu_seat_close(struct cpu_seat *seat);

/*
 * Move to a CPU, or to any of the usual ones (CPU_NONE). Nothing happens if the seat is there
 * already. Returns 0, or -EPERM if the CPU is not one of the usual ones or may not be used any
 * more; the seat is then CPU_NONE.
 */
int cpu_seat_move(struct cpu_seat *seat, uint32_t cpu);

/*
 * Request a slice of one to three times look_ns, within its limits. Of two threads that have had
 * their share, the scheduler prefers the one whose slice ends first, so a long slice delays the
 * wake-ups of the calling thread. Does nothing on kernels without slices (before 6.12).
 */
void cpu_seat_fit_slice(struct cpu_seat *seat, uint64_t look_ns);

/* Returns the CPU on which the calling thread runs, or CPU_NONE if that is unknown. */
uint32_t cpu_seat_here(void);

/* Whether thread tid may use any of the usual CPUs; true if that is unknown. */
bool cpu_seat_shares_cpu(const struct cpu_seat *seat, pid_t tid);

/* Returns how often the calling thread has left its CPU; UINT64_MAX if unknown. One system call. */
struct cpu_leaves cpu_leaves_read(void);

/* Whether a thread with these counts before and after stayed on its CPU in between. */
static inline bool cpu_has_stayed(struct cpu_leaves before, struct cpu_leaves after)
{
	return before.waited != UINT64_MAX && before.waited == after.waited &&
	       before.preempted == after.preempted;
}

/*
 * Whether the calling thread has a real-time policy: it takes any CPU at once, except from threads
 * of a higher or equal priority.
 */
bool cpu_seat_is_real_time(void);

/*
 * Whether thread tid has a real-time policy that prevents the calling thread from taking its CPU.
 */
bool cpu_seat_is_outranked(pid_t tid);

/*
 * Whether the scheduler lets the calling thread take the CPU of thread tid: tid does not outrank
 * it, does not have a better nice value, and we are not SCHED_IDLE while tid is not. False if
 * unknown.
 */
bool cpu_seat_may_preempt(pid_t tid);
