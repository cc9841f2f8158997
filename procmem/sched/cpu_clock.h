/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of one thread of a process in nanoseconds, read with at most one system call.
 *
 * The task clock of perf_event_open(2) is always exact. Reading it for a thread that runs on
 * another CPU interrupts that CPU and costs the thread about 1 µs and us 10 µs; for a thread that
 * does not run it costs 0.5 µs. The kernel's task clock includes kernel time even if that is
 * excluded. So the event always excludes it, as perf_event_paranoid requires from 2 on.
 *
 * With its page mapped (cpu_clock_map()), the clock of a thread that has waited since the last
 * readings costs nothing. Two equal readings show that the thread had no CPU between them, if the
 * kernel's clock is finer than that; and the kernel changes a word of the page (struct
 * perf_event_mmap_page, lock) whenever the thread gets one, before it executes anything. So the
 * clock stands until the word changes. On other machines than x86-64 other CPUs may see the
 * thread's next stores before the word. Kernels before 3.18 do not update the page of such an
 * event; 5.9 is the first version that can be told by the page's size.
 *
 * If perf events are not available (perf_event_paranoid of 3 or more, a seccomp filter, a kernel
 * without them), the first number of /proc/PID/task/TID/schedstat is used, at 0.8 µs a reading.
 * The kernel updates it when it switches threads and, for a running thread, at timer ticks: every
 * 4 ms with CONFIG_HZ=250. Between updates it does not advance. Totals and shares over many
 * samples are right, but they rest on only as many samples as there were timer ticks: at 1 kHz,
 * three of four samples of a running thread show no CPU time.
 *
 * Source: perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK; kernel/events/core.c
 * (task_clock_event_read(), task_clock_event_add(), perf_event_update_userpage()), fs/proc/base.c
 * (proc_pid_schedstat).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

enum cpu_clock_kind { CPU_CLOCK_NONE, CPU_CLOCK_TASK, CPU_CLOCK_SCHEDSTAT };

struct perf_event_mmap_page;

/* A zero-initialised clock is closed. */
struct cpu_clock {
	enum cpu_clock_kind kind;
	int fd; /* valid unless kind is CPU_CLOCK_NONE */
	/* The event's page, mapped; NULL: none. */
	const struct perf_event_mmap_page *page;
	/* The last reading, if has_last, and the page's word before it. */
	uint64_t last_ns;
	uint32_t last_word;
	bool has_last;
	bool is_standing; /* at last_ns, until the word changes */
};

/*
 * Open the clock of thread tid (an id in our PID namespace) of the process, never that of another
 * process's thread. Returns 0, -ESRCH if there is no such thread, -EMFILE or -ENFILE if no
 * descriptor is left beyond the reserve of procmem/descriptor_limit.h, or -ENOTSUP if the kernel
 * offers neither source. cpu_clock_close() accepts NULL and a closed clock.
 */
int cpu_clock_open(const struct process *process, pid_t tid, struct cpu_clock *ret_clock);
void cpu_clock_close(struct cpu_clock *clock);

/*
 * Map the page of the clock's event, if that is possible and of use. It counts as locked memory of
 * the user, as the rings of perf_events.h do (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK).
 */
void cpu_clock_map(struct cpu_clock *clock);

/*
 * Read the CPU time since the clock was opened or the thread began; only the difference of two
 * readings is meaningful. Returns 0, or -ESRCH if it cannot be read any more.
 */
int cpu_clock_read(struct cpu_clock *clock, uint64_t *ret_ns);

/*
 * Whether the clock is known to stand since the last readings, without a system call. If not, the
 * thread has had a CPU, or nothing is known.
 */
bool cpu_clock_stands(const struct cpu_clock *clock);

/*
 * Read the CPU time of all threads that a process has and had; only the difference of two readings
 * is meaningful. The kernel updates it when it switches threads and, for a running thread, at timer
 * ticks. Returns 0, or -ESRCH if there is no such process.
 *
 * Source: clock_gettime(2), kernel/time/posix-cpu-timers.c (thread_group_cputime()).
 */
int cpu_clock_read_process(pid_t pid, uint64_t *ret_ns);

/*
 * Parse the number at the start of text; a blank must follow it. Returns 0, or -EBADMSG if there
 * is no number, it is too large, or no blank follows.
 */
int cpu_clock_parse(const char *text, size_t length, uint64_t *ret_number);
