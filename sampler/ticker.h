/* SPDX-License-Identifier: MIT */
/*
 * When to sample. Time is cut into intervals of one tick each, from an absolute moment on;
 * a tick comes anywhere in its interval, each place as likely. One whose time has passed is
 * skipped and counted, never caught up in a burst.
 *
 * With evenly spaced ticks a program with a period of the tick, or a simple fraction or multiple of
 * it, is always met at the same places of its period, and what it does at others is never seen.
 * A place that is anywhere in the whole interval, and nothing less, meets each part of any
 * such period as often as it lasts; one tick an interval keeps the rate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* Where the time comes from: CLOCK_MONOTONIC, or a test's own. */
struct ticker_clock {
	uint64_t (*now_ns)(void *context);
	/* Sleep until an absolute time; may end early. */
	void (*sleep_until)(void *context, uint64_t time_ns);
	void *context;
};

/* A clock that only sleeps. */
struct ticker_clock ticker_clock_usual(void);

struct ticker {
	const struct ticker_clock *clock; /* borrowed */
	uint64_t interval_ns;
	uint64_t begin_ns;    /* of the next tick's interval */
	uint64_t deadline_ns; /* of the next tick */
	uint64_t late_ns;     /* how late the last tick that was due came */
	uint64_t random;      /* of the places of this run's ticks */
	/* borrowed: late_ticks are those that were skipped, other_syscalls its sleeps */
	struct sampler_stats *stats;
};

/*
 * The first tick is at once, at deadline_ns; seed says where in their intervals the others are.
 * clock and stats, where the ticker counts at once, are borrowed.
 */
void ticker_start(struct ticker *ticker, double rate_hz, uint64_t seed,
		  const struct ticker_clock *clock, struct sampler_stats *stats);

/*
 * Sleep until the next deadline or until_ns, whichever is first, but never longer
 * than TICKER_MAX_SLEEP_NS, so that a signal that came just before is noticed.
 * Returns the time at which it came back; *ret_due tells whether the deadline was
 * reached before until_ns (a tick is to be taken).
 */
#define TICKER_MAX_SLEEP_NS 100000000u
uint64_t ticker_wait(struct ticker *ticker, uint64_t until_ns, bool *ret_due);

/*
 * Put the next tick off until time_ns or, where its interval has one later, until then: those
 * that would come before are not needed. Returns how many these are.
 */
uint64_t ticker_put_off(struct ticker *ticker, uint64_t time_ns);

/*
 * Count the ticks that were still to come before end_ns as skipped. Every interval that
 * was over by then has either been due once, or put off, or is among the late ticks. Returns how
 * many ticks that were put off would have come behind end_ns.
 */
uint64_t ticker_finish(struct ticker *ticker, uint64_t end_ns);
