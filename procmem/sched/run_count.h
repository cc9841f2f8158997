/* SPDX-License-Identifier: MIT */
/*
 * How often a thread was switched in, and on which CPU it is. Two files of /proc/PID/task/TID are
 * kept open and read with pread(2); only a few digits are parsed.
 *
 * The kernel raises the run count when it switches the thread in (sched_info_arrive()), before the
 * thread continues, so anything that the thread writes comes after. If another thread holds its
 * CPU, an unchanged count proves that the thread has not run; if the thread may be running, it
 * proves nothing. Kernels without CONFIG_SCHED_INFO always report "0 0 0".
 *
 * Source: kernel/sched/stats.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"
#include "procmem/sched/thread_stat.h"

/* If it is closed, both descriptors are -1. */
struct run_count {
	int schedstat_fd;
	int stat_fd;
};

#define RUN_COUNT_CLOSED ((struct run_count){-1, -1})

/*
 * Open both files of thread tid, an id in our PID namespace. Returns 0, -ESRCH if it has ended,
 * -ENOTSUP if this kernel does not count, or -EMFILE or -ENFILE if no descriptor is left beyond
 * the reserve of procmem/descriptor_limit.h. run_count_close() accepts RUN_COUNT_CLOSED.
 */
int run_count_open(const struct process *process, pid_t tid, struct run_count *ret_runs);
void run_count_close(struct run_count *runs);

/*
 * The run count alone. run_count_open_fd() returns a descriptor, which the caller closes, or an
 * error of run_count_open(). run_count_read_fd() reads the count from it; errors of
 * run_count_read().
 */
int run_count_open_fd(const struct process *process, pid_t tid);
int run_count_read_fd(int fd, uint64_t *ret_nr_runs);

/* Read the run count. Returns 0, -ESRCH if it cannot be read any more, or -EBADMSG. */
int run_count_read(const struct run_count *runs, uint64_t *ret_nr_runs);

/* Read state and CPU; about 10 µs. Errors of run_count_read(). */
int run_count_read_stat(const struct run_count *runs, struct thread_stat *ret_stat);

/*
 * Returns how often thread tid was switched in; 0 if unknown. A thread that was seen waiting after
 * the count was read (wait_place_read()) has not run until the count changes. For a thread that
 * was not seen waiting the count proves nothing: the kernel does not count a thread that is
 * preempted on its way to sleep and then continues.
 */
uint64_t run_count_read_once(const struct process *process, pid_t tid);
