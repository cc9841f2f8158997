/* SPDX-License-Identifier: MIT */
#include "sampler/ticker.h"

#include <assert.h>
#include <sys/prctl.h>
#include <time.h>

#include "procmem/clock.h"
#include "procmem/hash.h"
#include "sampler/sample.h"

static uint64_t monotonic_now_ns(void *context)
{
	(void)context;
	return clock_now_ns();
}

/* A signal ends the sleep early. */
static void monotonic_sleep_until(void *context, uint64_t time_ns)
{
	const struct timespec time = timespec_of(time_ns);

	(void)context;
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

struct ticker_clock ticker_clock_default(void)
{
	return (struct ticker_clock){
		.now_ns = monotonic_now_ns,
		.sleep_until = monotonic_sleep_until,
	};
}

static uint64_t ticker_now(const struct ticker *ticker)
{
	return ticker->clock->now_ns(ticker->clock->context);
}

void ticker_start(struct ticker *ticker, double rate_hz, uint64_t seed,
		  const struct ticker_clock *clock, struct sampler_stats *stats)
{
	/* The default slack of 50 µs would delay every tick at 10 kHz by half of it. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	*ticker = (struct ticker){
		.clock = clock,
		.interval_ns = (uint64_t)(NS_PER_S / rate_hz),
		.stats = stats,
		/* Spread over all bits; never 0, which the generator could not leave. */
		.random = (seed * HASH_GOLDEN_RATIO) | 1,
	};
	ticker->begin_ns = ticker_now(ticker);
	ticker->deadline_ns = ticker->begin_ns;
}

/* A uniformly random number below bound: the upper half of xorshift64* (Vigna 2016). */
static uint64_t random_below(struct ticker *ticker, uint64_t bound)
{
	uint64_t x = ticker->random;
	uint64_t upper;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	ticker->random = x;
	upper = (x * 0x2545f4914f6cdd1du) >> 32;
	/* upper * bound / 2^32, for any bound */
	return upper * (bound >> 32) + (upper * (bound & UINT32_MAX) >> 32);
}

/*
 * Set the next deadline after a tick that came at now_ns: in the next interval that is not over;
 * others before it are skipped. The deadline is in what is left of that interval, so a tick that
 * ends in the next one's interval, as every other one does at high rates, costs none.
 */
static void ticker_advance(struct ticker *ticker, uint64_t now_ns)
{
	const uint64_t interval_ns = ticker->interval_ns;
	uint64_t begin_ns = ticker->begin_ns + interval_ns;
	uint64_t gone_ns = now_ns > begin_ns ? now_ns - begin_ns : 0;

	assert(interval_ns > 0);
	if (gone_ns >= interval_ns) {
		uint64_t nr_missed = gone_ns / interval_ns;

		ticker->stats->late_ticks += nr_missed;
		begin_ns += nr_missed * interval_ns;
		gone_ns -= nr_missed * interval_ns;
	}
	ticker->begin_ns = begin_ns;
	ticker->deadline_ns = begin_ns + gone_ns + random_below(ticker, interval_ns - gone_ns);
}

uint64_t ticker_wait(struct ticker *ticker, uint64_t until_ns, bool *ret_due)
{
	uint64_t now_ns = ticker_now(ticker);
	uint64_t wake_ns = now_ns + TICKER_MAX_SLEEP_NS;

	if (wake_ns > until_ns)
		wake_ns = until_ns;
	if (wake_ns > ticker->deadline_ns)
		wake_ns = ticker->deadline_ns;
	if (wake_ns > now_ns) {
		ticker->stats->other_syscalls++;
		ticker->clock->sleep_until(ticker->clock->context, wake_ns);
		now_ns = ticker_now(ticker);
	}
	*ret_due = now_ns >= ticker->deadline_ns && now_ns < until_ns;
	if (!*ret_due)
		return now_ns;
	ticker->late_ns = now_ns - ticker->deadline_ns;
	histogram_add(&ticker->stats->lateness, ticker->late_ns);
	ticker_advance(ticker, now_ns);
	return now_ns;
}

uint64_t ticker_postpone(struct ticker *ticker, uint64_t time_ns)
{
	uint64_t nr;

	if (time_ns <= ticker->deadline_ns)
		return 0;
	nr = (time_ns - ticker->deadline_ns + ticker->interval_ns - 1) / ticker->interval_ns;
	ticker->begin_ns += nr * ticker->interval_ns;
	ticker->deadline_ns += nr * ticker->interval_ns;
	return nr;
}

uint64_t ticker_finish(struct ticker *ticker, uint64_t end_ns)
{
	uint64_t nr_over;

	if (ticker->deadline_ns >= end_ns)
		return ticker->begin_ns > end_ns ? (ticker->begin_ns - end_ns) / ticker->interval_ns
						 : 0;
	nr_over = (end_ns - ticker->begin_ns) / ticker->interval_ns;
	ticker->stats->late_ticks += nr_over ? nr_over : 1;
	ticker->begin_ns += (nr_over ? nr_over : 1) * ticker->interval_ns;
	ticker->deadline_ns = ticker->begin_ns;
	return 0;
}
