/* SPDX-License-Identifier: MIT */
/*
 * A source of events: processes that were forked, called exec, or ended. There are three, each in a
 * file of its own. They report what the kernel knows of processes, of which only some may be of
 * interest; procmem/tree/process_tree.h selects those of one tree.
 *
 * source            sees                         needs                      costs the target
 * proc connector    all processes                root, or Linux 6.6;        a message for each
 *                                                initial PID, user and      fork, thread, exec
 *                                                network namespaces         and exit
 * perf, per CPU     all processes                CAP_PERFMON                a record for the same
 * perf, per thread  what it follows, and their   perf_event_paranoid <= 2,  an event for each CPU
 *                   descendants                  own processes              in each new thread
 * new ids           those that live for a while  nothing                    nothing
 *
 * No source reports an event of a process before its fork.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum process_event_kind {
	PROCESS_FORKED,	     /* pid and parent_pid are set */
	PROCESS_CALLED_EXEC, /* it has succeeded */
	/* The main thread has ended. The process runs on if others of its threads do. */
	PROCESS_MAIN_THREAD_ENDED,
	PROCESS_EVENTS_LOST, /* an unknown number, of any processes */
};

struct process_event {
	enum process_event_kind kind;
	pid_t pid;	  /* in our PID namespace, never that of another thread than the main one */
	pid_t parent_pid; /* of PROCESS_FORKED */
	int wait_status;  /* of PROCESS_MAIN_THREAD_ENDED, as of wait(2); -1: unknown */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

struct process_events;

struct process_events_ops {
	/*
	 * Get the oldest event that was not returned yet. Never blocks. Returns 0; -ENOENT if there
	 * is none, or none before the call that began this series; or -EAGAIN after many records
	 * that were of no interest: there may be more.
	 */
	int (*next)(struct process_events *events, struct process_event *ret_event);
	/*
	 * Follow all threads of a process, and what they create. *ret_is_complete: all of them were
	 * followed before the call. Returns 0, also for a process that has ended; -EPERM, -EMFILE,
	 * -ENFILE, -ENOMEM or another errno. NULL if the source sees all processes.
	 */
	int (*follow)(struct process_events *events, pid_t pid, bool *ret_is_complete);
	/* Returns how many processes may have come and gone unseen. NULL: none without an event. */
	uint64_t (*nr_maybe_missed)(const struct process_events *events);
	void (*close)(struct process_events *events);
};

/* The first member of every source. */
struct process_events {
	const struct process_events_ops *ops;
	int fd;		   /* can be polled, but see process_tree_fd(); -1: none */
	bool reports_ends; /* and exec; otherwise only forks */
};

/*
 * Listen to the kernel's proc connector. Receiving needs no capability once it is open. Returns 0,
 * -EPERM if that is not allowed (before Linux 6.6, without CAP_NET_ADMIN), -ENOTSUP if this kernel
 * has none or we are in a PID, user or network namespace that gets none, -ENOMEM, or another errno.
 * Source: drivers/connector/cn_proc.c.
 */
int process_events_open_connector(struct process_events **ret_events);

/*
 * Open perf events that count nothing and record tasks. With all_processes, one event for each CPU;
 * otherwise one for each CPU in each thread that is followed. Returns 0, -EPERM, -ENOTSUP if this
 * kernel has none, -ENOMEM, -EMFILE, or another errno. Source: perf_event_open(2).
 */
int process_events_open_perf(bool all_processes, struct process_events **ret_events);

/*
 * Look at the process ids that the kernel gave out since the last look. This misses processes that
 * have ended by then, and knows only the present parent of the others. Returns 0, -ENOTSUP if the
 * kernel does not tell its last id, or -ENOMEM. Source: proc_sys_kernel(5), ns_last_pid.
 */
int process_events_open_new_ids(struct process_events **ret_events);

/* Release a source. NULL is accepted. */
static inline void process_events_close(struct process_events *events)
{
	if (events)
		events->ops->close(events);
}
