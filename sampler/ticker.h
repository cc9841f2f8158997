/* SPDX-License-Identifier: MIT */
/*
 * When to sample. Time is divided into intervals from an absolute start, with one tick in each,
 * at a uniformly random place. A tick whose time has passed is skipped and counted, and never
 * caught up in a burst.
 *
 * With evenly spaced ticks, a program whose period is the tick interval, or a simple fraction or
 * multiple of it, would always be met at the same places of its period, and the rest would never
 * be seen. A random place in the whole interval meets each part of any such period in proportion
 * to its length, and one tick per interval keeps the rate.
 *
 * The places depend on the seed and the interval alone: tickers of the same rate, seed and origin
 * tick together, whenever they were started.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

struct ticker {
	uint64_t interval_ns;
	uint64_t origin_ns;   /* the begin of some interval */
	uint64_t begin_ns;    /* of the next tick's interval */
	uint64_t deadline_ns; /* of the next tick */
	uint64_t late_ns;     /* delay of the last tick that was taken */
	uint64_t seed;
	struct sampler_stats *stats; /* borrowed; counts skipped ticks in late_ticks */
};

/*
 * Start with a tick at now_ns; the later ones are in the intervals that begin at origin_ns, which
 * is at most now_ns. seed determines their places. stats, in which the ticker counts, is borrowed.
 */
void ticker_start(struct ticker *ticker, double rate_hz, uint64_t seed, uint64_t origin_ns,
		  uint64_t now_ns, struct sampler_stats *stats);

/* Go on at another rate, with the next tick in the next interval that begins after now_ns. */
void ticker_set_rate(struct ticker *ticker, double rate_hz, uint64_t now_ns);

/*
 * At now_ns: whether the deadline was reached before until_ns, and a tick is to be taken. The next
 * deadline is set then.
 */
bool ticker_take(struct ticker *ticker, uint64_t now_ns, uint64_t until_ns);

/*
 * Let no tick be due until ticker_resume(), with a tick at once. Ticks between the two are neither
 * taken nor skipped.
 */
void ticker_hold(struct ticker *ticker, uint64_t now_ns);
void ticker_resume(struct ticker *ticker, uint64_t now_ns);

/*
 * A uniformly random time in the next whole span after now_ns, where time is divided into spans as
 * it is into intervals. It is the same for all tickers of the same seed and origin.
 */
uint64_t ticker_time_in_span(const struct ticker *ticker, uint64_t now_ns, uint64_t span_ns);

/*
 * Postpone the next tick to the first one at or after time_ns; the ticks before are not needed.
 * Returns how many these are.
 */
uint64_t ticker_postpone(struct ticker *ticker, uint64_t time_ns);

/*
 * Count the remaining ticks before end_ns as skipped, so that every interval that is over by then
 * was either due once, or postponed, or is counted as late. Returns the number of postponed ticks
 * that would have come after end_ns.
 */
uint64_t ticker_finish(struct ticker *ticker, uint64_t end_ns);
