/* SPDX-License-Identifier: MIT */
/*
 * Parses two files of /proc/PID/task/TID, which the caller has read. Source: proc_pid_stat(5);
 * fs/proc/array.c (do_task_stat()), fs/proc/base.c (proc_pid_schedstat()).
 */
#pragma once

#include <stdint.h>

/* Enough for a stat file, with a name and 52 fields, and its NUL. */
#define THREAD_STAT_MAX_BYTES 1280

/* Enough for a schedstat file, three numbers of at most 20 digits, and its NUL. */
#define THREAD_SCHEDSTAT_MAX_BYTES 80

/* What the kernel reports about a thread at one moment. */
struct thread_stat {
	char state;   /* R, S, D, T, t, Z, … */
	uint32_t cpu; /* the CPU on which it runs, or ran last */
};

/* Parse the text of a stat file. Returns 0 or -EBADMSG. */
int thread_stat_parse(const char *text, struct thread_stat *ret_stat);

/* Parse the run count, the last number of a schedstat file. Returns 0 or -EBADMSG. */
int thread_schedstat_parse(const char *text, uint64_t *ret_nr_runs);
