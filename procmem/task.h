/* SPDX-License-Identifier: MIT */
/* What the kernel tells of one thread of a process at a moment. */
#pragma once

#include <sys/types.h>

#include "procmem/process.h"

/* Room for the name of a function of the kernel; a longer one is cut. */
#define TASK_WCHAN_MAX_BYTES 64

struct task_state {
	char letter;			  /* R, S, D, T, t, Z, …: proc_pid_stat(5) */
	char wchan[TASK_WCHAN_MAX_BYTES]; /* where in the kernel it waits; "": not, or not told */
};

/*
 * Read the state of thread tid, an id in our PID namespace. 0; -ESRCH (it has ended),
 * -EBADMSG, or the errno of a system call. That wchan may not be read is no error.
 *
 * Source: proc_pid_stat(5), proc_pid_wchan(5).
 */
int task_read_state(const struct process *process, pid_t tid, struct task_state *ret_state);
