/* SPDX-License-Identifier: MIT */
/*
 * Pins the calling thread to a CPU, and reports whether it stayed there. While the thread holds a
 * CPU no other thread runs on it, so whatever ran on that CPU stands still.
 *
 * The CPU is one of those that the thread was allowed to use when the pin was opened. The
 * thread's slice is how long the scheduler lets it run after a wake-up. Since Linux 6.12 a short
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

/* A zero-initialised pin is closed. */
struct cpu_pin {
	bool is_open;
	cpu_set_t usual;	 /* the CPUs that the thread may use when the pin is closed */
	uint32_t cpu;		 /* the thread is pinned to it; CPU_NONE: any of usual */
	uint64_t usual_slice_ns; /* the thread's slice before the pin was opened */
	uint64_t slice_ns;	 /* requested; 0: the scheduler's default */
	bool slice_is_refused;	 /* this kernel has no per-thread slices */
};

/* How often the calling thread has left its CPU so far. */
struct context_switches {
	uint64_t voluntary;   /* it went to sleep */
	uint64_t involuntary; /* another thread took the CPU */
};

/*
 * Open a pin for the calling thread, which must make all other calls, too. The thread does not
 * move. Returns 0, or the errno of a system call: the kernel has more CPUs than CPU_SETSIZE.
 * cpu_pin_close() lets the thread use its usual CPUs again; it accepts a closed pin.
 */
int cpu_pin_open(struct cpu_pin *ret_pin);
void cpu_pin_close(struct cpu_pin *pin);

/*
 * Pin the thread to a CPU, or unpin it (CPU_NONE). Does nothing if nothing would change. Returns 0,
 * or -EPERM if the CPU is not one of the usual ones or may no longer be used; the thread is then
 * not pinned.
 */
int cpu_pin_move(struct cpu_pin *pin, uint32_t cpu);

/*
 * Request a slice of one to three times look_ns, within its limits. Of two threads that have had
 * their share, the scheduler prefers the one whose slice ends first, so a long slice delays the
 * wake-ups of the calling thread. Does nothing on kernels without slices (before 6.12).
 */
void cpu_pin_fit_slice(struct cpu_pin *pin, uint64_t look_ns);

/* Returns the CPU on which the calling thread runs, or CPU_NONE if that is unknown. */
uint32_t cpu_current(void);

/* Whether thread tid may use any of the usual CPUs; true if that is unknown. */
bool cpu_pin_shares_cpu(const struct cpu_pin *pin, pid_t tid);

/* Read the calling thread's counts; UINT64_MAX if unknown. One system call. */
struct context_switches context_switches_read(void);

/* Whether a thread with these counts before and after stayed on its CPU in between. */
static inline bool cpu_has_stayed(struct context_switches before, struct context_switches after)
{
	return before.voluntary != UINT64_MAX && before.voluntary == after.voluntary &&
	       before.involuntary == after.involuntary;
}
