/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of one thread of a process, in nanoseconds, read by one system call.
 *
 * The task clock of perf_event_open(2) is exact at every moment: reading that of a thread
 * that runs on another processor interrupts it there, for about a microsecond of its time and
 * ten of ours (0.5 if it does not run). Kernel time counts whether it is excluded or not, as
 * the kernel's own clock for tasks does not look at that; so it is excluded always, which
 * perf_event_paranoid demands from 2 on.
 *
 * Where that is forbidden (a perf_event_paranoid of 3 or more, a seccomp filter, a kernel
 * without it) the first number of /proc/PID/task/TID/schedstat takes its place, 0.8 µs. The
 * kernel brings it up to date when the thread is switched, and at its timer's ticks while it
 * runs, every 4 ms with CONFIG_HZ=250: between two of these it stands still. Sums over many
 * samples are right, and so are shares, but they come from as many samples as there were
 * ticks: at 1 kHz three of four samples of a thread that runs show none.
 *
 * Source: perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK; kernel/events/core.c
 * (task_clock_event_read), fs/proc/base.c (proc_pid_schedstat).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

enum cpu_clock_kind { CPU_CLOCK_NONE, CPU_CLOCK_TASK, CPU_CLOCK_SCHEDSTAT };

/* All zero it is closed. */
struct cpu_clock {
	enum cpu_clock_kind kind;
	int fd; /* if it is open */
};

/*
 * Open the clock of thread tid, an id in our PID namespace, of the process; it is never
 * another process's thread's. 0; -ESRCH (there is no such thread), -EMFILE or -ENFILE (no
 * descriptor is left, but for the few of procmem/descriptor_limit.h), -ENOTSUP (the kernel
 * tells it in neither way). cpu_clock_close() accepts NULL and a closed one.
 */
int cpu_clock_open(const struct process *process, pid_t tid, struct cpu_clock *ret_clock);
void cpu_clock_close(struct cpu_clock *clock);

/*
 * The CPU time so far: since the clock was opened or the thread began, so that only the
 * difference of two readings says anything. 0; -ESRCH: it cannot be read (any more).
 */
int cpu_clock_read(const struct cpu_clock *clock, uint64_t *ret_ns);

/*
 * The number at the start of text, which a blank ends. 0; -EBADMSG: it begins with none, is
 * too large, or does not end.
 */
int cpu_clock_parse(const char *text, size_t length, uint64_t *ret_number);
