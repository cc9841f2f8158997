/* SPDX-License-Identifier: MIT */
/* What the kernel tells of one thread of a process at a moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
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

/* Where a thread stands that waits inside of the kernel. */
struct task_place {
	uint64_t sp_addr;   /* of the program, as is */
	uint64_t pc_addr;   /* the instruction behind the system call, or the one that faulted */
	uint64_t call_hash; /* of the number and the arguments of the system call, as text */
	uint64_t nr_runs;   /* so often it had been given a processor before; 0: not told */
};

/*
 * Whether a thread that was at two places has waited all the time; where nr_runs is not told, it
 * may have run in between, to wait for the same again.
 */
static inline bool task_place_is_same(const struct task_place *a, const struct task_place *b)
{
	return a->sp_addr == b->sp_addr && a->pc_addr == b->pc_addr &&
	       a->call_hash == b->call_hash && a->nr_runs == b->nr_runs;
}

/*
 * How often thread tid was given a processor; 0: that is not told. A thread that was seen to wait
 * after that number was read (task_read_place()) has not run until it is another one. Of one that
 * was not seen to wait it says nothing: kernels do not count one that goes on where it was preempted
 * on its way to sleep.
 *
 * Source: fs/proc/base.c (proc_pid_schedstat); kernel/sched/stats.h (sched_info_arrive).
 */
uint64_t task_read_runs(const struct process *process, pid_t tid);

/*
 * Where thread tid waits; nr_runs is what task_read_runs() has told before. 0; -EAGAIN (it runs, or
 * could), -ESRCH (it has ended), -EPERM, -ENOENT (this kernel does not tell), -EBADMSG.
 * task_place_parse() takes the text of the file apart, likewise, and sets all but nr_runs.
 *
 * Source: proc_pid_syscall(5).
 */
int task_read_place(const struct process *process, pid_t tid, uint64_t nr_runs,
		    struct task_place *ret_place);
int task_place_parse(const char *text, struct task_place *ret_place);

/*
 * Whether thread tid has waited at place since that was read, so that what was read of its memory
 * in between is of one instant. 0; -EAGAIN (it has not), errors of task_read_place().
 */
int task_check_place(const struct process *process, pid_t tid, const struct task_place *place);
