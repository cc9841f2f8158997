/* SPDX-License-Identifier: MIT */
#include "procmem/ancestry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Start a child that waits to be killed. With a command, it has called exec. */
static pid_t start_child(const char *command)
{
	int pipe_fds[2];
	char byte;
	pid_t pid;

	cr_assert(zero(int, pipe2(pipe_fds, O_CLOEXEC)));
	pid = fork();
	if (pid == 0) {
		(void)close(pipe_fds[0]);
		if (command)
			(void)execlp(command, command, "60", NULL);
		(void)write(pipe_fds[1], "", 1);
		for (;;)
			(void)pause();
	}
	(void)close(pipe_fds[1]);
	/* Wait for a byte, or for exec to close the pipe. */
	cr_assert(ge(int, (int)read(pipe_fds[0], &byte, 1), 0));
	(void)close(pipe_fds[0]);
	return pid;
}

static int parent_of(pid_t pid, pid_t *ret_parent)
{
	struct process child = PROCESS_CLOSED;
	struct process parent = PROCESS_CLOSED;
	int err;

	cr_assert(zero(int, process_open(pid, &child, NULL)));
	err = ancestry_parent(&child, &parent);
	*ret_parent = parent.pid;
	process_close(&parent);
	process_close(&child);
	return err;
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

Test(ancestry, fork_has_its_parent)
{
	pid_t child = start_child(NULL);
	pid_t parent;

	cr_expect(zero(int, parent_of(child, &parent)));
	cr_expect(eq(int, parent, getpid()));
	end_child(child);
}

Test(ancestry, exec_has_no_parent)
{
	pid_t child = start_child("sleep");
	pid_t parent;

	cr_expect(eq(int, parent_of(child, &parent), -ENOENT));
	end_child(child);
}
