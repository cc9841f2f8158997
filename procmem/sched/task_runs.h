/* SPDX-License-Identifier: MIT */
/*
 * How often a thread was switched in, and on which CPU it is. Two files of /proc/PID/task/TID are
 * kept open and read with pread(2); only a few digits are parsed.
 *
 * The run count rises whenever the thread is switched in (sched_info_arrive()). If another thread
 * holds its CPU, an unchanged count proves that the thread has not run; if the thread may be
 * running, it proves nothing. Kernels without CONFIG_SCHED_INFO always report "0 0 0".
 *
 * Source: fs/proc/base.c (proc_pid_schedstat()), fs/proc/array.c (do_task_stat()),
 * kernel/sched/stats.h; proc_pid_stat(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

/* What the kernel reports about a thread at one moment. */
struct task_now {
	char state;   /* R, S, D, T, t, Z, … */
	uint32_t cpu; /* the CPU on which it runs, or ran last */
};

/* Both descriptors of a closed one are -1. */
struct task_runs {
	int schedstat_fd;
	int stat_fd;
};

#define TASK_RUNS_CLOSED ((struct task_runs){-1, -1})

/*
 * Open both files of thread tid, an id in our PID namespace. Returns 0, -ESRCH if it has ended,
 * -ENOTSUP if this kernel does not count, or -EMFILE or -ENFILE if no descriptor is left beyond
 * the reserve of procmem/descriptor_limit.h. task_runs_close() accepts TASK_RUNS_CLOSED.
 */
int task_runs_open(const struct process *process, pid_t tid, struct task_runs *ret_runs);
void task_runs_close(struct task_runs *runs);

/*
 * The run count alone. task_runs_open_count() returns a descriptor, which the caller closes, or an
 * error of task_runs_open(). task_runs_read_count() reads the count from it; errors of
 * task_runs_read().
 */
int task_runs_open_count(const struct process *process, pid_t tid);
int task_runs_read_count(int fd, uint64_t *ret_nr_runs);

/* Read the run count. Returns 0, -ESRCH if it cannot be read any more, or -EBADMSG. */
int task_runs_read(const struct task_runs *runs, uint64_t *ret_nr_runs);

/* Read state and CPU; about 10 µs. Errors of task_runs_read(). */
int task_runs_now(const struct task_runs *runs, struct task_now *ret_now);

/* Parse the text of a stat file. Returns 0 or -EBADMSG. */
int task_now_parse(const char *text, struct task_now *ret_now);
