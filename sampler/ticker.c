/* SPDX-License-Identifier: MIT */
#include "sampler/ticker.h"

#include <sys/prctl.h>
#include <time.h>

#include "sampler/sample.h"

uint64_t clock_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void ticker_start(struct ticker *ticker, double rate_hz)
{
	/* The default slack of 50 µs would delay every tick at 10 kHz by half of it. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	*ticker = (struct ticker){
		.interval_ns = rate_hz > 0 ? (uint64_t)(NS_PER_S / rate_hz) : 0,
		.deadline_ns = clock_now_ns(),
	};
}

/* Set the next deadline after a tick that was due at deadline_ns and came at now_ns. */
static void ticker_advance(struct ticker *ticker, uint64_t now_ns)
{
	uint64_t lateness_ns = now_ns - ticker->deadline_ns;
	uint64_t nr_missed = lateness_ns / ticker->interval_ns;

	if (lateness_ns > ticker->max_lateness_ns)
		ticker->max_lateness_ns = lateness_ns;
	ticker->late_ticks += nr_missed;
	ticker->deadline_ns += (nr_missed + 1) * ticker->interval_ns;
}

/* Sleep until an absolute time; a signal ends it early. */
static void sleep_until(uint64_t time_ns)
{
	const struct timespec time = {
		.tv_sec = (time_t)(time_ns / NS_PER_S),
		.tv_nsec = (long)(time_ns % NS_PER_S),
	};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

uint64_t ticker_wait(struct ticker *ticker, uint64_t until_ns, bool *ret_due)
{
	uint64_t now_ns = clock_now_ns();

	*ret_due = true;
	if (!ticker->interval_ns)
		return now_ns;
	if (now_ns < ticker->deadline_ns) {
		uint64_t wake_ns = now_ns + TICKER_MAX_SLEEP_NS;

		if (wake_ns > until_ns)
			wake_ns = until_ns;
		if (wake_ns > ticker->deadline_ns)
			wake_ns = ticker->deadline_ns;
		ticker->nr_sleeps++;
		sleep_until(wake_ns);
		now_ns = clock_now_ns();
		if (now_ns < ticker->deadline_ns) {
			*ret_due = false;
			return now_ns;
		}
	}
	ticker_advance(ticker, now_ns);
	return now_ns;
}
