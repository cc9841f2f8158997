/* SPDX-License-Identifier: MIT */
/* The test's own process, opened as a target. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "procmem/process.h"

/* Close it with process_close(). */
static inline struct process own_process_open(void)
{
	struct process process;

	cr_assert(zero(int, process_open(getpid(), &process, NULL)));
	return process;
}

/* Wait until thread tid of the test, which has ended, is gone from /proc. */
static inline void own_process_await_end(const struct process *process, pid_t tid)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];

	process_thread_path(name, tid, "stat");
	while (faccessat(process->proc_fd, name, F_OK, 0) == 0)
		(void)usleep(1000);
}
