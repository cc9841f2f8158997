/* SPDX-License-Identifier: MIT */
#include "cmd/signals.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "procmem/clock.h"

/*
 * timeout(1) signals us and then our process group; when a terminal is closed, both the shell and
 * the kernel signal us. Within this time the same signal is the same request.
 */
#define ECHO_NS 200000000

static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t stop_number; /* the last signal that set it */
static struct timespec stop_time;	  /* when it came; set before stop_requested */
static volatile sig_atomic_t write_requested;
static volatile sig_atomic_t pause_requested;
static volatile sig_atomic_t forward_pid; /* 0: no process */
static volatile sig_atomic_t suspension_requested, was_continued;
static const struct signals_terminal *volatile guarded; /* borrowed; NULL: none */

static const struct {
	int number;
	bool stops;
} signals[] = {
	{SIGINT, true},	  {SIGTERM, true},  {SIGHUP, true},
	{SIGQUIT, false}, {SIGUSR1, false}, {SIGUSR2, false},
};

enum { NR_SIGNALS = sizeof(signals) / sizeof(*signals) };

const volatile sig_atomic_t *signals_stop_flag(void)
{
	return &stop_requested;
}

static void forward(int number, siginfo_t *info, void *context)
{
	int before = errno;

	(void)context;
	/*
	 * A signal that the command sends to its process group, also ours, has reached it
	 * already.
	 */
	if (forward_pid && signals_sent_by_process(info) && info->si_pid != forward_pid)
		(void)kill(forward_pid, number);
	errno = before;
}

bool signals_record_stop(int number)
{
	struct timespec now;
	int64_t since_ns;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	since_ns = (now.tv_sec - stop_time.tv_sec) * INT64_C(1000000000) + now.tv_nsec -
		   stop_time.tv_nsec;
	if (stop_requested && number == stop_number && since_ns < ECHO_NS)
		return false;
	stop_time = now;
	stop_number = number;
	stop_requested = 1;
	return true;
}

static void on_stop(int number, siginfo_t *info, void *context)
{
	const bool is_second = stop_requested;

	if (!signals_record_stop(number))
		return;
	forward(number, info, context);
	if (!is_second)
		return;
	if (guarded)
		signals_restore_terminal(guarded);
	_exit(128 + number);
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Catch the signals that stop us, or the others. */
static void catch_signals(bool stops, int flags)
{
	struct sigaction action = {
		.sa_sigaction = stops ? on_stop : forward,
		.sa_flags = SA_SIGINFO | flags,
	};

	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (signals[i].stops == stops && !is_ignored(signals[i].number))
			(void)sigaction(signals[i].number, &action, NULL);
}

void signals_catch_stops(void)
{
	catch_signals(true, 0);
}

void signals_restart_calls(void)
{
	catch_signals(true, SA_RESTART);
}

static void on_write_request(int number)
{
	(void)number;
	write_requested = 1;
}

void signals_catch_write_requests(void)
{
	const struct sigaction action = {.sa_handler = on_write_request, .sa_flags = SA_RESTART};

	if (!is_ignored(SIGUSR1))
		(void)sigaction(SIGUSR1, &action, NULL);
}

/* Clears the request before anything is written: one that comes meanwhile is another request. */
bool signals_take_write_request(void)
{
	const bool was_requested = write_requested;

	if (was_requested)
		write_requested = 0;
	return was_requested;
}

const volatile sig_atomic_t *signals_pause_flag(void)
{
	return &pause_requested;
}

static void on_pause(int number)
{
	(void)number;
	pause_requested = !pause_requested;
}

void signals_catch_pauses(void)
{
	const struct sigaction action = {.sa_handler = on_pause, .sa_flags = SA_RESTART};

	if (!is_ignored(SIGUSR2))
		(void)sigaction(SIGUSR2, &action, NULL);
}

void signals_toggle_pause(void)
{
	on_pause(SIGUSR2);
}

/* The guarded terminal. */

/* Signals that end the program at once. Those of faults come again when the handler returns. */
static const int deaths[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,	 SIGFPE,
			     SIGILL,  SIGSYS,  SIGTRAP, SIGALRM, SIGXCPU};

enum { NR_DEATHS = sizeof(deaths) / sizeof(*deaths) };

void signals_restore_terminal(const struct signals_terminal *terminal)
{
	size_t done = 0;
	sigset_t background, before;

	/* From the background the terminal may be changed only with this signal blocked. */
	(void)sigemptyset(&background);
	(void)sigaddset(&background, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &background, &before);
	while (done < terminal->nr_bytes) {
		const ssize_t nr =
			write(terminal->fd, terminal->text + done, terminal->nr_bytes - done);

		if (nr <= 0)
			break;
		done += (size_t)nr;
	}
	(void)tcsetattr(terminal->fd, TCSANOW, &terminal->modes);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* The handler is gone after its first call, so that the signal has its usual effect then. */
static void on_death(int number)
{
	if (guarded)
		signals_restore_terminal(guarded);
	(void)raise(number);
}

static void on_suspension(int number)
{
	if (number == SIGTSTP)
		suspension_requested = 1;
	else
		was_continued = 1;
}

void signals_guard_terminal(const struct signals_terminal *terminal)
{
	const struct sigaction death = {
		.sa_handler = terminal ? on_death : SIG_DFL,
		.sa_flags = terminal ? (int)SA_RESETHAND : 0,
	};
	const struct sigaction suspension = {
		.sa_handler = terminal ? on_suspension : SIG_DFL,
		.sa_flags = SA_RESTART,
	};

	guarded = terminal;
	for (size_t i = 0; i < NR_DEATHS; i++)
		if (!is_ignored(deaths[i]))
			(void)sigaction(deaths[i], &death, NULL);
	if (!is_ignored(SIGTSTP))
		(void)sigaction(SIGTSTP, &suspension, NULL);
	(void)sigaction(SIGCONT, &suspension, NULL);
}

bool signals_take_suspension(void)
{
	const bool was_requested = suspension_requested;

	suspension_requested = 0;
	return was_requested;
}

bool signals_take_continuation(void)
{
	const bool was = was_continued;

	was_continued = 0;
	return was;
}

void signals_suspend(void)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	struct sigaction before;

	(void)sigaction(SIGTSTP, &usual, &before);
	(void)kill(getpid(), SIGTSTP);
	(void)sigaction(SIGTSTP, &before, NULL);
}

void signals_sleep(uint64_t time_ns)
{
	const struct timespec time = timespec_of(time_ns);
	sigset_t handled, before;

	signals_get_handled(&handled);
	/* A signal that comes between the test and the call waits for the call, and ends it. */
	(void)sigprocmask(SIG_BLOCK, &handled, &before);
	if (!stop_requested)
		(void)ppoll(NULL, 0, &time, &before);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_make_writes_fail(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

void signals_forward_to(pid_t pid)
{
	forward_pid = pid;
	if (pid)
		catch_signals(false, SA_RESTART);
}

void signals_get_handled(sigset_t *ret_set)
{
	(void)sigemptyset(ret_set);
	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (!is_ignored(signals[i].number))
			(void)sigaddset(ret_set, signals[i].number);
}

bool signals_is_stop(int number)
{
	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (signals[i].number == number)
			return signals[i].stops;
	return false;
}
