/* SPDX-License-Identifier: MIT */
/* What the kernel reports about one thread of a process at one moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

/* Limit on the name of a kernel function; a longer name is cut. */
#define TASK_WCHAN_MAX_BYTES 64

struct task_state {
	char letter; /* R, S, D, T, t, Z, …: proc_pid_stat(5) */
	/* kernel function in which it waits; "": not waiting or unknown */
	char wchan[TASK_WCHAN_MAX_BYTES];
};

/*
 * Read the state of thread tid, an id in our PID namespace. Returns 0, -ESRCH if it has ended,
 * -EBADMSG, or the errno of a system call. An unreadable wchan is not an error. Source:
 * proc_pid_stat(5), proc_pid_wchan(5).
 */
int task_read_state(const struct process *process, pid_t tid, struct task_state *ret_state);

/* Where a waiting thread entered the kernel. */
struct task_place {
	uint64_t sp_addr; /* user-mode stack pointer, unmodified */
	/* user-mode instruction: after the system call, or the one that faulted */
	uint64_t pc_addr;
	uint64_t call_hash; /* hash of the system call's number and arguments, as text */
	uint64_t nr_runs;   /* run count read before; 0: unknown */
};

/*
 * Whether a thread that was at both places waited all the time in between. If nr_runs is unknown,
 * it may have run and entered the same wait again.
 */
static inline bool task_place_is_same(const struct task_place *a, const struct task_place *b)
{
	return a->sp_addr == b->sp_addr && a->pc_addr == b->pc_addr &&
	       a->call_hash == b->call_hash && a->nr_runs == b->nr_runs;
}

/*
 * Returns how often thread tid was switched in; 0 if unknown. A thread that was seen waiting after
 * the count was read (task_read_place()) has not run until the count changes. For a thread that
 * was not seen waiting the count proves nothing: the kernel does not count a thread that is
 * preempted on its way to sleep and then continues.
 *
 * Source: fs/proc/base.c (proc_pid_schedstat); kernel/sched/stats.h (sched_info_arrive).
 */
uint64_t task_read_runs(const struct process *process, pid_t tid);

/*
 * Read where thread tid waits. nr_runs is the result of an earlier task_read_runs(). Returns 0,
 * -EAGAIN if the thread runs or is runnable, -ESRCH if it has ended, -EPERM, -ENOENT if this
 * kernel does not report it, or -EBADMSG. task_place_parse() parses the text of the file, with the
 * same errors, and sets all members but nr_runs.
 *
 * Source: proc_pid_syscall(5).
 */
int task_read_place(const struct process *process, pid_t tid, uint64_t nr_runs,
		    struct task_place *ret_place);
int task_place_parse(const char *text, struct task_place *ret_place);

/*
 * Check that thread tid has waited at place since that was read, which proves that memory read in
 * between belongs to one instant. Returns 0, -EAGAIN if it has not, or an error of
 * task_read_place().
 */
int task_check_place(const struct process *process, pid_t tid, const struct task_place *place);
