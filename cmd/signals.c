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
	if (is_second)
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
