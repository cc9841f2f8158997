/* SPDX-License-Identifier: MIT */
#include "cmd/signals.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procmem/clock.h"

enum { ECHO_MS = 200 };

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* On a busy machine more time may pass between two calls: then they are another request. */
Test(signals, repetition_is_the_same_request, .timeout = 60)
{
	int64_t begin_ms;
	bool is_new;

	do {
		(void)signals_record_stop(SIGTERM);
		cr_assert(ne(int, *signals_stop_flag(), 0));
		begin_ms = now_ms();
		cr_assert(signals_record_stop(SIGHUP), "another signal");
		is_new = signals_record_stop(SIGHUP);
	} while (is_new && now_ms() - begin_ms >= ECHO_MS);
	cr_expect(not(is_new), "the same signal");
}

Test(signals, signal_after_a_while_is_another_request, .timeout = 60)
{
	const struct timespec pause = {.tv_nsec = (ECHO_MS + 10) * 1000000};

	cr_assert(signals_record_stop(SIGINT), "the first");
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	cr_expect(signals_record_stop(SIGINT));
}

enum { HOUR_S = 3600 };

Test(signals, sleep_ends_before_it_begins, .timeout = 60)
{
	(void)signals_record_stop(SIGINT);
	signals_sleep(HOUR_S * NS_PER_S);
}

Test(signals, sleep_ends_with_the_signal, .timeout = 60)
{
	pid_t child;

	/* One that was ignored when the test began would stay so. */
	(void)signal(SIGINT, SIG_DFL);
	signals_catch_stops();
	child = fork();
	if (!child)
		_exit(kill(getppid(), SIGINT) != 0);
	signals_sleep(HOUR_S * NS_PER_S);
	cr_expect(ne(int, *signals_stop_flag(), 0));
	(void)waitpid(child, NULL, 0);
}
