/* SPDX-License-Identifier: MIT */
#include "sampler/ticker.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>

#include "sampler/sample.h"

Test(ticker, rate_is_an_interval)
{
	static const struct {
		double rate_hz;
		uint64_t interval_ns;
	} cases[] = {{0, 0},	      {-1, 0},	       {1, NS_PER_S},
		     {1000, 1000000}, {10000, 100000}, {0.5, 2 * (uint64_t)NS_PER_S}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ticker ticker;

		ticker_start(&ticker, cases[i].rate_hz);
		cr_expect(eq(u64, ticker.interval_ns, cases[i].interval_ns));
		cr_expect(le(u64, ticker.deadline_ns, clock_now_ns()));
		cr_expect(zero(u64, ticker.late_ticks));
	}
}

Test(ticker, without_a_rate_every_wait_is_due)
{
	struct ticker ticker;
	bool due = false;

	ticker_start(&ticker, 0);
	uint64_t before_ns = clock_now_ns();
	uint64_t now_ns = ticker_wait(&ticker, UINT64_MAX, &due);
	cr_expect(due);
	cr_expect(ge(u64, now_ns, before_ns));
	cr_expect(zero(u64, ticker.nr_sleeps));
	cr_expect(zero(u64, ticker.late_ticks));
}

/* Deadlines stay on the grid of the first one; those that passed are counted once. */
Test(ticker, missed_deadlines_are_skipped_and_counted)
{
	enum { INTERVAL_NS = 1000000, NR_MISSED = 7 };
	struct ticker ticker = {.interval_ns = INTERVAL_NS};
	bool due = false;

	ticker.deadline_ns = clock_now_ns() - NR_MISSED * INTERVAL_NS;
	uint64_t first_ns = ticker.deadline_ns;
	uint64_t now_ns = ticker_wait(&ticker, UINT64_MAX, &due);
	uint64_t nr_missed = (now_ns - first_ns) / INTERVAL_NS;
	cr_expect(due);
	cr_expect(zero(u64, ticker.nr_sleeps));
	cr_expect(ge(u64, nr_missed, NR_MISSED));
	cr_expect(eq(u64, ticker.late_ticks, nr_missed));
	cr_expect(eq(u64, ticker.max_lateness_ns, now_ns - first_ns));
	cr_expect(gt(u64, ticker.deadline_ns, now_ns));
	cr_expect(le(u64, ticker.deadline_ns - now_ns, INTERVAL_NS));
	cr_expect(zero(u64, (ticker.deadline_ns - first_ns) % INTERVAL_NS));
}

Test(ticker, sleeps_until_the_deadline_and_not_before)
{
	struct ticker ticker = {.interval_ns = NS_PER_S};
	bool due = false;

	ticker.deadline_ns = clock_now_ns() + 2000000;
	uint64_t deadline_ns = ticker.deadline_ns;
	uint64_t now_ns = ticker_wait(&ticker, UINT64_MAX, &due);
	cr_expect(due);
	cr_expect(eq(u64, ticker.nr_sleeps, 1));
	cr_expect(ge(u64, now_ns, deadline_ns));
	cr_expect(eq(u64, (ticker.deadline_ns - deadline_ns) / NS_PER_S, 1 + ticker.late_ticks));
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
}

/* A signal ends the wait early: no tick, and the deadline is still to come. */
Test(ticker, signal_wakes_it_without_a_tick)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval soon = {.it_value.tv_usec = 1000};
	struct ticker ticker = {.interval_ns = NS_PER_S};
	bool due = true;

	ticker.deadline_ns = clock_now_ns() + 3600ull * NS_PER_S;
	uint64_t deadline_ns = ticker.deadline_ns;
	cr_assert(zero(int, sigaction(SIGALRM, &action, NULL)));
	cr_assert(zero(int, setitimer(ITIMER_REAL, &soon, NULL)));
	(void)ticker_wait(&ticker, UINT64_MAX, &due);
	cr_expect(not(due));
	cr_expect(eq(u64, ticker.deadline_ns, deadline_ns));
	cr_expect(zero(u64, ticker.late_ticks));
}
