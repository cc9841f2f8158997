/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/child.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/signals.h"

Test(child, exit_status_follows_the_wait_status)
{
	static const struct {
		int wait_status, status;
	} cases[] = {
		{0, 0},		 {1 << 8, 1},	 {3 << 8, 3},
		{255 << 8, 255}, {SIGKILL, 137}, {SIGSEGV | 0x80 /* core dumped */, 139},
		{SIGINT, 130},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect(eq(int, child_exit_status(cases[i].wait_status), cases[i].status));
}

static void expect_status(const char *script, int status)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	struct child child = CHILD_NONE;

	cr_assert(eq(int, child_fork(argv, &child), 0));
	cr_assert(eq(int, child_begin(&child), 0));
	cr_expect(eq(int, child_wait(&child, false), 0));
	cr_expect(eq(int, child_exit_status(child.wait_status), status), "%s", script);
	cr_expect(zero(int, child.pid));
	cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1), "the child is reaped");
	child_discard(&child);
}

Test(child, wait_returns_the_exit_status)
{
	expect_status("exit 0", 0);
	expect_status("exit 3", 3);
	expect_status("sleep 0.1; exit 4", 4);
	expect_status("kill -KILL $$", 137);
}

/* Read the line of /proc/self/status that lists the ignored signals. */
static void ignored_signals(char line[64])
{
	FILE *status = fopen("/proc/self/status", "re");

	cr_assert(status != NULL);
	while (fgets(line, 64, status) && strncmp(line, "SigIgn:", 7) != 0)
		;
	(void)fclose(status);
	line[strcspn(line, "\n")] = '\0';
}

/*
 * The child has the signal dispositions of the time of the fork, not those that the parent set
 * later.
 */
Test(child, inherits_the_signal_dispositions_at_the_fork)
{
	char before[64];
	char *const argv[] = {(char *)"grep", (char *)"-q", before, (char *)"/proc/self/status",
			      NULL};
	struct child child = CHILD_NONE;

	cr_assert(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	cr_assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	cr_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	ignored_signals(before);
	cr_assert(eq(int, child_fork(argv, &child), 0));
	signals_catch_stops();
	signals_make_writes_fail();
	cr_assert(eq(int, child_begin(&child), 0));
	cr_expect(eq(int, child_wait(&child, false), 0));
	cr_expect(eq(int, child_exit_status(child.wait_status), 0));
}

Test(child, reports_why_it_cannot_start)
{
	static const struct {
		const char *name;
		int err;
	} cases[] = {
		{"/nonexistent/program", -ENOENT},
		{"no-such-program", -ENOENT},
		{"", -ENOENT},
		{"/etc/passwd", -EACCES},
		{"/", -EACCES},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *const argv[] = {(char *)cases[i].name, NULL};
		struct child child = CHILD_NONE;

		cr_assert(eq(int, child_fork(argv, &child), 0));
		cr_expect(eq(int, child_begin(&child), cases[i].err), "%s", cases[i].name);
		cr_expect(zero(int, child.pid));
		cr_expect(child_has_ended(&child));
	}
	cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1), "all children are reaped");
}

Test(child, discarded_child_does_not_run)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"kill -KILL $PPID", NULL};
	struct child child = CHILD_NONE;

	child_discard(&child);
	cr_assert(eq(int, child_fork(argv, &child), 0));
	cr_expect(not(child_has_ended(&child)));
	child_discard(&child);
	cr_expect(zero(int, child.pid));
	cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1), "the child is reaped");
}

Test(child, may_be_killed_before_it_starts)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 0", NULL};
	struct child child = CHILD_NONE;

	signals_catch_stops();
	signals_make_writes_fail();
	cr_assert(eq(int, child_fork(argv, &child), 0));
	cr_assert(eq(int, kill(child.pid, SIGKILL), 0));
	while (!child_has_ended(&child))
		(void)usleep(1000);
	cr_expect(eq(int, child_begin(&child), 0));
	cr_expect(eq(int, child_wait(&child, false), 0));
	cr_expect(eq(int, child_exit_status(child.wait_status), 137));
}

/* A script that reports when it is ready and at each signal. The third signal ends it. */
static const char counting[] = "n=0; trap 'n=$((n + 1)); echo >&%d; [ $n -lt 3 ] || exit 7' "
			       "INT TERM HUP; "
			       "echo >&%d; while :; do sleep 0.01; done";

enum { ANSWER_FD = STDIN_FILENO }; /* one digit: shells accept no more in a redirection */

/* Different signals: the same one might count as a repetition of the first. */
static void send_two(pid_t pid, int answer_fd)
{
	char byte;

	(void)kill(pid, SIGHUP);
	if (read(answer_fd, &byte, 1) == 1)
		(void)kill(pid, SIGINT);
}

Test(child, receives_forwarded_signals, .timeout = 60)
{
	char script[256], byte;
	char *const argv[] = {(char *)"sh", (char *)"-c", script, NULL};
	struct child child = CHILD_NONE;
	sigset_t set;
	int ends[2];
	pid_t sender;

	/* The shell cannot trap a signal that is ignored, as under nohup or after a shell's &. */
	cr_assert(signal(SIGHUP, SIG_DFL) != SIG_ERR);
	cr_assert(signal(SIGINT, SIG_DFL) != SIG_ERR);
	cr_assert(signal(SIGTERM, SIG_DFL) != SIG_ERR);
	cr_assert(eq(int, pipe(ends), 0));
	cr_assert(eq(int, dup2(ends[1], ANSWER_FD), ANSWER_FD));
	(void)snprintf(script, sizeof(script), counting, ANSWER_FD, ANSWER_FD);
	cr_assert(eq(int, child_fork(argv, &child), 0));
	signals_catch_stops();
	signals_make_writes_fail();
	signals_forward_to(child.pid);
	cr_assert(eq(int, child_begin(&child), 0));
	cr_assert(eq(int, (int)read(ends[0], &byte, 1), 1));
	cr_assert(eq(int, raise(SIGTERM), 0)); /* while sampling continues */
	cr_expect(eq(int, *signals_stop_flag(), 1));
	while (read(ends[0], &byte, 1) != 1)
		;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	sender = fork();
	if (sender == 0) {
		send_two(getppid(), ends[0]);
		_exit(0);
	}
	cr_expect(eq(int, child_wait(&child, false), SIGINT), "the second signal ends the wait");
	cr_expect(eq(int, child_wait(&child, true), 0));
	cr_expect(eq(int, child_exit_status(child.wait_status), 7), "all three signals arrived");
	(void)waitpid(sender, NULL, 0);
}
