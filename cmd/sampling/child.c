/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/stop.h"
#include "procmem/cleanup.h"

/* A read or write of size bytes, whatever signals come; the number of bytes, or -1 and errno. */
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

/* The child's part. Both descriptors are closed by exec, which is how that is told. */
static _Noreturn void become(char *const argv[], int gate_fd, int exec_fd,
			     const struct sigaction *child_action)
{
	char go;
	int error;

	/* The end of the file: nobody is left who could want it to run. */
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
	/* Where it is ignored there is nothing to wait for. */
	(void)sigaction(SIGCHLD, &standard, &before);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close_end(&gate_out);
		close_end(&exec_in);
		become(argv, gate_in, exec_out, &before);
	}
	*ret_child = (struct child){
		.pid = pid,
		.gate_fd = take_fd(gate_out),
		.exec_fd = take_fd(exec_in),
	};
	return 0;
}

/* Take its wait status, if it has ended or, without WNOHANG, when it has. Whether it has. */
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

	/* If it was killed already there is nobody to read that, and the exec cannot fail. */
	(void)write_word(child->gate_fd, &go, sizeof(go));
	close_end(&child->gate_fd);
	if (read_word(child->exec_fd, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close_end(&child->exec_fd);
	if (error) {
		stop_pass_on_to(0);
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

/* Whether a signal is one that the child got, too: of the terminal, to all of our group. */
static bool reached_child(const struct child *child, const siginfo_t *info)
{
	return !stop_was_sent(info) && getpgid(child->pid) == getpgrp();
}

/*
 * Take the next signal of set. Its number if it asks us to stop, and nobody else; else 0, after
 * it was passed on if it was sent to us.
 */
static int take_signal(const struct child *child, const sigset_t *set)
{
	siginfo_t info;
	int number = sigwaitinfo(set, &info);

	if (number < 0 || number == SIGCHLD || reached_child(child, &info))
		return 0;
	if (stop_was_sent(&info) && info.si_pid != child->pid)
		(void)kill(child->pid, number);
	return stop_is_asked_by(number) ? number : 0;
}

/*
 * Blocked signals wait to be taken, so that none is missed between a look at the child and the
 * sleep; SIGCHLD, too, which would be nothing to anybody else.
 */
int child_wait(struct child *child, bool impatient)
{
	sigset_t set, before;
	int number = 0;

	stop_signals(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	stop_pass_on_to(0); /* we do, as long as the id is the child's */
	while (!reap(child, WNOHANG)) {
		number = take_signal(child, &set);
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
	stop_pass_on_to(0);
	(void)reap(child, 0);
}
