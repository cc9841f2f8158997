/* SPDX-License-Identifier: MIT */
/*
 * How often a thread was given a CPU, and which one it is on. Two descriptors of /proc/PID/task/TID
 * are kept and read with pread(2): there is no parsing but of a few digits.
 *
 * The run count rises whenever the thread is switched in (sched_info_arrive()). Of a thread whose
 * CPU is held by somebody else it tells that it has not run, as long as the count stands; of one
 * that may be running it tells nothing. Kernels without CONFIG_SCHED_INFO have "0 0 0" for ever.
 *
 * Source: fs/proc/base.c (proc_pid_schedstat()), fs/proc/array.c (do_task_stat()),
 * kernel/sched/stats.h; proc_pid_stat(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

/* What the kernel says of a thread at one moment. */
struct task_now {
	char state;   /* R, S, D, T, t, Z, … */
	uint32_t cpu; /* where it runs, or ran last */
};

/* A closed one has descriptors of -1. */
struct task_runs {
	int schedstat_fd;
	int stat_fd;
};

#define TASK_RUNS_CLOSED ((struct task_runs){-1, -1})

/*
 * Open both files of thread tid, an id in our PID namespace. 0; -ESRCH (it has ended), -ENOTSUP
 * (this kernel does not count), -EMFILE or -ENFILE (no descriptor is left, but for the few of
 * procmem/descriptor_limit.h). task_runs_close() accepts TASK_RUNS_CLOSED.
 */
int task_runs_open(const struct process *process, pid_t tid, struct task_runs *ret_runs);
void task_runs_close(struct task_runs *runs);

/*
 * Of these the file with the run count alone: a descriptor, which is the caller's to close, or an
 * error of task_runs_open(); and the count that it tells: errors of task_runs_read().
 */
int task_runs_open_count(const struct process *process, pid_t tid);
int task_runs_read_count(int fd, uint64_t *ret_nr_runs);

/* The run count. 0; -ESRCH: it cannot be read (any more), -EBADMSG. */
int task_runs_read(const struct task_runs *runs, uint64_t *ret_nr_runs);

/* State and CPU, some 10 µs. Errors of task_runs_read(). */
int task_runs_now(const struct task_runs *runs, struct task_now *ret_now);

/* The same of the text of a stat file. 0 or -EBADMSG. */
int task_now_parse(const char *text, struct task_now *ret_now);
