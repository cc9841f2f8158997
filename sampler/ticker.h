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
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* A source of time: CLOCK_MONOTONIC, or a test's. */
struct ticker_clock {
	uint64_t (*now_ns)(void *context);
	/* Sleep until an absolute time; may return early. */
	void (*sleep_until)(void *context, uint64_t time_ns);
	void *context;
};

/* The clock that simply sleeps. */
struct ticker_clock ticker_clock_default(void);

struct ticker {
	const struct ticker_clock *clock; /* borrowed */
	uint64_t interval_ns;
	uint64_t begin_ns;    /* of the next tick's interval */
	uint64_t deadline_ns; /* of the next tick */
	uint64_t late_ns;     /* delay of the last tick that was due */
	uint64_t random;      /* state of the generator for this run's places */
	/* borrowed; counts skipped ticks in late_ticks, sleeps in other_syscalls */
	struct sampler_stats *stats;
};

/*
 * Start with a tick at once, at deadline_ns; seed determines the places of the later ones. clock
 * and stats, in which the ticker counts, are borrowed.
 */
void ticker_start(struct ticker *ticker, double rate_hz, uint64_t seed,
		  const struct ticker_clock *clock, struct sampler_stats *stats);

/* Limit on one sleep: how late a signal may be noticed. */
#define TICKER_MAX_SLEEP_NS 100000000u

/*
 * Sleep until the next deadline or until_ns, whichever is first, but at most TICKER_MAX_SLEEP_NS,
 * so that a signal that arrived just before is noticed. Returns the time of return. *ret_due: the
 * deadline was reached before until_ns, and a tick is to be taken.
 */
uint64_t ticker_wait(struct ticker *ticker, uint64_t until_ns, bool *ret_due);

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
