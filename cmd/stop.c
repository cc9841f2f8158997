/* SPDX-License-Identifier: MIT */
#include "cmd/stop.h"

#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;

const volatile sig_atomic_t *stop_flag(void)
{
	return &stop_requested;
}

static void on_signal(int signal_number)
{
	if (stop_requested)
		_exit(128 + signal_number);
	stop_requested = 1;
}

static void catch_signals(int flags)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction before;

		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		(void)sigaction(signals[i], &action, NULL);
	}
}

void stop_catch_signals(void)
{
	catch_signals(0);
}

void stop_let_finish(void)
{
	catch_signals(SA_RESTART);
}

void stop_survive_writes(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}
