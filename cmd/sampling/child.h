/* SPDX-License-Identifier: MIT */
/*
 * The command that run starts: our child, from its fork to the one time that it is waited for.
 *
 * It is forked first and begins its program later, so that its id is known while there is still
 * time to refuse, and so that it has the signals, the limits and the descriptors that we were
 * started with: whatever we change of ours is changed after the fork.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Private but for pid, and for wait_status when it has been waited for. */
struct child {
	pid_t pid;	 /* 0: there is none, or it has been waited for */
	int wait_status; /* as waitpid(2) gives it */
	int gate_fd;	 /* what it waits for before it begins; -1: it has begun */
	int exec_fd;	 /* tells why it could not; -1: it has begun */
};

#define CHILD_NONE ((struct child){.gate_fd = -1, .exec_fd = -1})

/*
 * Fork a child for the command argv, which ends with NULL and is borrowed: it waits for
 * child_begin(). SIGCHLD is not ignored by us any more, as it may be when we are started. 0, or
 * the errno of a system call.
 */
int child_fork(char *const argv[], struct child *ret_child);

/*
 * Have it execute its program, which is looked for as execvp(3) does. SIGPIPE has to be ignored
 * or caught. 0: it has begun, or was killed before that; or the error of execvp(), negative: it
 * is gone then.
 */
int child_begin(struct child *child);

/* Whether it has ended. It stays to be waited for. */
bool child_has_ended(const struct child *child);

/*
 * Wait until it has ended, once, whatever signals come meanwhile. Those that are sent to us are
 * passed on (cmd/stop.h); a terminal sends them to the child itself, and they are nothing to
 * us then. impatient: the next one that asks us to stop ends the waiting; else the second one
 * does. 0 and child->wait_status, or the number of the signal that ended it.
 */
int child_wait(struct child *child, bool impatient);

/* The exit status that tells of a wait status: the child's own, or 128 + the signal's number. */
int child_exit_status(int wait_status);

/* Have one that did not begin end without having run; for any child. */
void child_discard(struct child *child);
