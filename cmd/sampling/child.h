/* SPDX-License-Identifier: MIT */
/*
 * The command that run starts: our child, from its fork until it is waited for, once.
 *
 * It is forked first and executes its program later. So its id is known while the run can still
 * be refused, and it has the signals, limits and descriptors that we were started with: ours are
 * changed only after the fork.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Private, except for pid, and for wait_status after the wait. */
struct child {
	pid_t pid;	 /* 0: there is none, or it was waited for */
	int wait_status; /* as set by waitpid(2) */
	int gate_fd;	 /* the child waits for this before it begins; -1: it has begun */
	int exec_fd;	 /* reports why exec failed; -1: it has begun */
};

#define CHILD_NONE ((struct child){.gate_fd = -1, .exec_fd = -1})

/*
 * Fork a child for the command argv, which ends with NULL and is borrowed. The child waits for
 * child_begin(). SIGCHLD gets its default action, as it may have been ignored when we were
 * started. Returns 0, or the errno of a system call.
 */
int child_fork(char *const argv[], struct child *ret_child);

/*
 * Let the child execute its program, which is searched for as execvp(3) does. SIGPIPE must be
 * ignored or caught. Returns 0 if the program has begun, or if the child was killed before that;
 * otherwise the negative errno of execvp(), and the child is gone.
 */
int child_begin(struct child *child);

/* Whether the child has ended. It remains to be waited for. */
bool child_has_ended(const struct child *child);

/*
 * Wait, once, until the child has ended. Signals that are sent to us meanwhile are forwarded
 * (cmd/signals.h). Those of a terminal reach the child directly and have no effect on us. The
 * second signal to stop ends the wait; if impatient, the first one does. One that
 * signals_record_stop() rejects as a repetition is neither forwarded nor counted; the others set
 * the stop flag. Returns 0, and child->wait_status is set; or the number of the signal that ended
 * the wait.
 */
int child_wait(struct child *child, bool impatient);

/* Returns the exit status for a wait status: the child's own, or 128 + the signal's number. */
int child_exit_status(int wait_status);

/* End a child that has not begun, without running its command. Accepts any child. */
void child_discard(struct child *child);
