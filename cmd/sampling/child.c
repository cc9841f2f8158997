/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/signals.h"
#include "procmem/cleanup.h"

/*
 * read(2) and write(2), repeated after a signal. They return the number of bytes, or -1 with
 * errno set.
 */
static ssize_t read_word(int fd, void *word, size_t size)
{
	ssize_t length;

	do
		length = read(fd, word, size);
	while (length < 0 && errno == EINTR);
	return length;
}

static ssize_t write_word(int fd, const void *word, size_t size)
{
	ssize_t length;

	do
		length = write(fd, word, size);
	while (length < 0 && errno == EINTR);
	return length;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/*
 * The child's part. A successful exec closes both descriptors, which is how the parent learns of
 * it.
 */
static _Noreturn void exec_command(char *const argv[], int gate_fd, int exec_fd,
				   const struct sigaction *child_action)
{
	char go;
	int error;

	/* End of file: the parent is gone, and the command must not run. */
	if (read_word(gate_fd, &go, sizeof(go)) != sizeof(go))
		_exit(0);
	(void)sigaction(SIGCHLD, child_action, NULL);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)write_word(exec_fd, &error, sizeof(error));
	_exit(0);
}

int child_fork(char *const argv[], struct child *ret_child)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	struct sigaction before;
	int gate[2], exec[2];
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return -errno;
	cleanup_close int gate_in = gate[0], gate_out = gate[1];
	if (pipe2(exec, O_CLOEXEC) != 0)
		return -errno;
	cleanup_close int exec_in = exec[0], exec_out = exec[1];
	/* While SIGCHLD is ignored, the kernel keeps no status to wait for. */
	(void)sigaction(SIGCHLD, &standard, &before);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close_end(&gate_out);
		close_end(&exec_in);
		exec_command(argv, gate_in, exec_out, &before);
	}
	*ret_child = (struct child){
		.pid = pid,
		.gate_fd = take_fd(gate_out),
		.exec_fd = take_fd(exec_in),
	};
	return 0;
}

/*
 * Wait for the child; with WNOHANG, only if it has ended already. Returns whether it has, and
 * sets wait_status.
 */
static bool reap(struct child *child, int flags)
{
	pid_t pid;

	do
		pid = waitpid(child->pid, &child->wait_status, flags);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	child->pid = 0;
	return true;
}

int child_begin(struct child *child)
{
	const char go = 1;
	int error;

	/* If the child was killed already, nobody reads this, and the exec cannot fail. */
	(void)write_word(child->gate_fd, &go, sizeof(go));
	close_end(&child->gate_fd);
	if (read_word(child->exec_fd, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close_end(&child->exec_fd);
	if (error) {
		signals_forward_to(0);
		(void)reap(child, 0);
	}
	return -error;
}

bool child_has_ended(const struct child *child)
{
	siginfo_t info = {.si_pid = 0};

	return child->pid == 0 ||
	       (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid == child->pid);
}

/* Whether the child got the signal as well: the terminal sends it to our whole process group. */
static bool reached_child(const struct child *child, const siginfo_t *info)
{
	return !signals_sent_by_process(info) && getpgid(child->pid) == getpgrp();
}

/*
 * Wait for the next signal of set. Forwards it to the child if another process sent it to us.
 * Returns its number if it asks us to stop, did not reach the child by itself and is no repetition,
 * otherwise 0.
 */
static int forward_next_signal(const struct child *child, const sigset_t *set)
{
	siginfo_t info;
	int number = sigwaitinfo(set, &info);

	if (number < 0 || number == SIGCHLD || reached_child(child, &info))
		return 0;
	if (signals_is_stop(number) && !signals_record_stop(number))
		return 0;
	if (signals_sent_by_process(&info) && info.si_pid != child->pid)
		(void)kill(child->pid, number);
	return signals_is_stop(number) ? number : 0;
}

/*
 * Signals are blocked and received one by one, so that none is missed between the check of the
 * child and the sleep. That includes SIGCHLD, which would otherwise be discarded.
 */
int child_wait(struct child *child, bool impatient)
{
	sigset_t set, before;
	int number = 0;

	signals_get_handled(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	signals_forward_to(0); /* forward_next_signal() does it, as long as the id is the child's */
	while (!reap(child, WNOHANG)) {
		number = forward_next_signal(child, &set);
		if (number && impatient)
			break;
		impatient |= number != 0;
		number = 0;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return number;
}

int child_exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void child_discard(struct child *child)
{
	if (child->gate_fd < 0)
		return;
	close_end(&child->gate_fd);
	close_end(&child->exec_fd);
	signals_forward_to(0);
	(void)reap(child, 0);
}
