/* SPDX-License-Identifier: MIT */
#include "sampler/ticker.h"

#include <assert.h>

#include "procmem/clock.h"
#include "procmem/hash.h"

void ticker_start(struct ticker *ticker, double rate_hz, uint64_t seed, uint64_t origin_ns,
		  uint64_t now_ns, struct sampler_stats *stats)
{
	const uint64_t interval_ns = (uint64_t)(NS_PER_S / rate_hz);

	*ticker = (struct ticker){
		.interval_ns = interval_ns,
		.origin_ns = origin_ns,
		.begin_ns = now_ns - (now_ns - origin_ns) % interval_ns,
		.deadline_ns = now_ns,
		.seed = seed,
		.stats = stats,
	};
}

/*
 * A uniformly random number below bound, which is fixed for a seed and an index: splitmix64
 * (Steele, Lea and Flood 2014).
 */
static uint64_t random_at(uint64_t seed, uint64_t index, uint64_t bound)
{
	uint64_t x = seed + (index + 1) * HASH_GOLDEN_RATIO;
	uint64_t upper;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	upper = (x ^ x >> 31) >> 32;
	/* upper * bound / 2^32, for any bound */
	return upper * (bound >> 32) + (upper * (bound & UINT32_MAX) >> 32);
}

/* A uniformly random number below bound, which is fixed for an interval. */
static uint64_t random_below(const struct ticker *ticker, uint64_t begin_ns, uint64_t bound)
{
	return random_at(ticker->seed, (begin_ns - ticker->origin_ns) / ticker->interval_ns, bound);
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
	ticker->deadline_ns =
		begin_ns + gone_ns + random_below(ticker, begin_ns, interval_ns - gone_ns);
}

void ticker_set_rate(struct ticker *ticker, double rate_hz, uint64_t now_ns)
{
	const uint64_t interval_ns = (uint64_t)(NS_PER_S / rate_hz);

	ticker->interval_ns = interval_ns;
	ticker->begin_ns = now_ns - (now_ns - ticker->origin_ns) % interval_ns + interval_ns;
	ticker->deadline_ns =
		ticker->begin_ns + random_below(ticker, ticker->begin_ns, interval_ns);
}

bool ticker_take(struct ticker *ticker, uint64_t now_ns, uint64_t until_ns)
{
	if (now_ns < ticker->deadline_ns || now_ns >= until_ns)
		return false;
	ticker->late_ns = now_ns - ticker->deadline_ns;
	histogram_add(&ticker->stats->lateness, ticker->late_ns);
	ticker_advance(ticker, now_ns);
	return true;
}

void ticker_hold(struct ticker *ticker, uint64_t now_ns)
{
	ticker->begin_ns = now_ns - (now_ns - ticker->origin_ns) % ticker->interval_ns;
	ticker->deadline_ns = UINT64_MAX;
}

void ticker_resume(struct ticker *ticker, uint64_t now_ns)
{
	ticker_hold(ticker, now_ns);
	ticker->deadline_ns = now_ns;
}

uint64_t ticker_time_in_span(const struct ticker *ticker, uint64_t now_ns, uint64_t span_ns)
{
	const uint64_t index = (now_ns - ticker->origin_ns) / span_ns + 1;

	/* Other numbers than those of the intervals. */
	return ticker->origin_ns + index * span_ns + random_at(~ticker->seed, index, span_ns);
}

uint64_t ticker_postpone(struct ticker *ticker, uint64_t time_ns)
{
	const uint64_t interval_ns = ticker->interval_ns;
	uint64_t nr;

	if (time_ns <= ticker->deadline_ns)
		return 0;
	nr = (time_ns - ticker->begin_ns) / interval_ns;
	for (;; nr++) {
		const uint64_t begin_ns = ticker->begin_ns + nr * interval_ns;
		const uint64_t deadline_ns = begin_ns + random_below(ticker, begin_ns, interval_ns);

		if (nr && deadline_ns >= time_ns) {
			ticker->begin_ns = begin_ns;
			ticker->deadline_ns = deadline_ns;
			return nr;
		}
	}
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
