/* SPDX-License-Identifier: MIT */
#include "cmd/stop.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t passed_on_to; /* 0: nobody */

static const struct {
	int number;
	bool stops;
} signals[] = {
	{SIGINT, true},	  {SIGTERM, true},  {SIGHUP, true},
	{SIGQUIT, false}, {SIGUSR1, false}, {SIGUSR2, false},
};

enum { NR_SIGNALS = sizeof(signals) / sizeof(*signals) };

const volatile sig_atomic_t *stop_flag(void)
{
	return &stop_requested;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	int before = errno;

	(void)context;
	if (passed_on_to && stop_was_sent(info))
		(void)kill(passed_on_to, number);
	errno = before;
}

static void on_stop(int number, siginfo_t *info, void *context)
{
	pass_on(number, info, context);
	if (stop_requested)
		_exit(128 + number);
	stop_requested = 1;
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Catch those that stop us, or the others. */
static void catch_signals(bool stops, int flags)
{
	struct sigaction action = {
		.sa_sigaction = stops ? on_stop : pass_on,
		.sa_flags = SA_SIGINFO | flags,
	};

	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (signals[i].stops == stops && !is_ignored(signals[i].number))
			(void)sigaction(signals[i].number, &action, NULL);
}

void stop_catch_signals(void)
{
	catch_signals(true, 0);
}

void stop_let_finish(void)
{
	catch_signals(true, SA_RESTART);
}

void stop_survive_writes(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

void stop_pass_on_to(pid_t pid)
{
	passed_on_to = pid;
	if (pid)
		catch_signals(false, SA_RESTART);
}

void stop_signals(sigset_t *ret_set)
{
	(void)sigemptyset(ret_set);
	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (!is_ignored(signals[i].number))
			(void)sigaddset(ret_set, signals[i].number);
}

bool stop_is_asked_by(int number)
{
	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (signals[i].number == number)
			return signals[i].stops;
	return false;
}
