/* SPDX-License-Identifier: MIT */
#include "cmd/page_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/option_values.h"
#include "cmd/print.h"
#include "cmd/user.h"
#include "procmem/cleanup.h"

/* The process's end of the socket, after the usual three descriptors. */
enum { OWN_FD = 3 };

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

/* Returns the program that opens pages, or NULL if there is none. */
static const char *find_program(void)
{
	if (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))
		return "xdg-open";
	return is_set("BROWSER") ? getenv("BROWSER") : NULL;
}

/* The process. */

/* Become the user who called sudo, if one did. Returns 0 or a negative errno. */
static int become_caller(void)
{
	const char *sudo_uid = getenv("SUDO_UID");
	char runtime_folder[sizeof("/run/user/4294967295")];
	gid_t groups[NGROUPS_MAX];
	int err, nr_groups;
	struct user user;
	uint32_t uid;

	if (geteuid() != 0 || !sudo_uid)
		return 0;
	if (!parse_count(sudo_uid, UINT32_MAX - 1, &uid))
		return -EINVAL;
	if (uid == 0)
		return 0;
	err = user_find(uid, &user);
	if (err)
		return err;
	nr_groups = user_groups(&user, groups, NGROUPS_MAX);
	if (nr_groups < 0)
		return nr_groups;
	if (setgroups((size_t)nr_groups, groups) || setresgid(user.gid, user.gid, user.gid) ||
	    setresuid(uid, uid, uid))
		return -errno;
	(void)snprintf(runtime_folder, sizeof(runtime_folder), "/run/user/%u", uid);
	if (setenv("HOME", user.home, 1) || setenv("USER", user.name, 1) ||
	    setenv("LOGNAME", user.name, 1) || setenv("XDG_RUNTIME_DIR", runtime_folder, 1))
		return -errno;
	return 0;
}

/* Keep only fd, as OWN_FD, and /dev/null. Returns 0 or a negative errno. */
static int drop_descriptors(int fd)
{
	const int opened = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Both above those that are replaced, wherever they were. */
	const int null = fcntl(opened, F_DUPFD_CLOEXEC, OWN_FD + 1);
	const int socket = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD + 1);

	if (null < 0 || socket < 0 || dup3(socket, OWN_FD, O_CLOEXEC) < 0)
		return -errno;
	for (int i = 0; i < OWN_FD; i++)
		if (dup2(null, i) < 0)
			return -errno;
	/* Linux 5.9; before it only what our caller gave us beside the usual three stays open. */
	(void)syscall(SYS_close_range, OWN_FD + 1u, UINT_MAX, 0u);
	return chdir("/") ? -errno : 0;
}

/* Wait for the name of a page, and execute the program with it. Returns a negative errno. */
static int wait_and_open(const char *program)
{
	char path[PATH_MAX];
	const ssize_t length = recv(OWN_FD, path, sizeof(path), 0);
	sigset_t none;

	if (length <= 0 || path[length - 1])
		_exit(0); /* no page */
	if (access(path, R_OK))
		return -errno;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execlp(program, program, path, NULL);
	return -errno;
}

/* Returns whether the error, or 0 for none, could be sent. */
static bool send_error(int err)
{
	return send(OWN_FD, &err, sizeof(err), MSG_NOSIGNAL) == sizeof(err);
}

static _Noreturn void run_process(const char *program, int fd)
{
	int err;

	(void)setsid();
	/* Its parent must not have to wait for it, and it must have no terminal. */
	if (fork() != 0 || drop_descriptors(fd))
		_exit(1);
	err = become_caller();
	if (send_error(err) && !err)
		(void)send_error(wait_and_open(program));
	_exit(1);
}

/* For its parent. */

void page_opener_start(struct page_opener *opener, const struct outputs *outputs)
{
	const char *program = outputs->opens ? find_program() : NULL;
	int ends[2];
	pid_t pid;

	if (!program || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		run_process(program, ends[1]);
	}
	(void)close(ends[1]);
	opener->fd = ends[0];
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Receive an error of the process. Returns false if it has ended or become the program. */
static bool receive_error(const struct page_opener *opener, int *ret_err)
{
	ssize_t length;

	do
		length = recv(opener->fd, ret_err, sizeof(*ret_err), 0);
	while (length < 0 && errno == EINTR);
	return length == sizeof(*ret_err);
}

/*
 * Let the process open the page of this full name. Returns 0 or a negative errno; *ret_is_ready:
 * whether the process could become the user who called sudo.
 */
static int open_page(const struct page_opener *opener, const char *path, bool *ret_is_ready)
{
	int err;

	/* It says first whether it is ready. */
	*ret_is_ready = true;
	if (!receive_error(opener, &err))
		return -ESRCH;
	*ret_is_ready = !err;
	if (err)
		return err;
	if (send(opener->fd, path, strlen(path) + 1, MSG_NOSIGNAL) < 0)
		return -ESRCH;
	return receive_error(opener, &err) ? err : 0;
}

void page_opener_show(struct page_opener *opener, const struct outputs *outputs, bool is_quiet)
{
	const char *path = outputs->opens ? outputs_page(outputs) : NULL;
	cleanup_free char *full = path ? realpath(path, NULL) : NULL;
	bool is_ready;
	int err;

	if (!full)
		return;
	if (opener->fd < 0) {
		if (!is_quiet)
			print_note("no desktop to open the page on: it is %s", full);
		return;
	}
	err = open_page(opener, full, &is_ready);
	if (err && !is_ready)
		print_error("cannot open the page %s as the user who called sudo: %s", full,
			    err == -ENOENT ? "not in /etc/passwd" : strerror(-err));
	else if (err)
		print_error("cannot open the page %s with %s: %s", full, find_program(),
			    strerror(-err));
	else if (!is_quiet)
		print_note("opened %s", full);
}

void page_opener_stop(struct page_opener *opener)
{
	if (opener->fd >= 0)
		(void)close(opener->fd);
	opener->fd = -1;
}
