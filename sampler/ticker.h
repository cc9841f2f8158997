/* SPDX-License-Identifier: MIT */
/*
 * When to sample: absolute deadlines on CLOCK_MONOTONIC. A deadline that has
 * passed is skipped and counted, never caught up in a burst.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ticker {
	uint64_t interval_ns; /* 0: no waiting, as fast as can be */
	uint64_t deadline_ns; /* of the next tick */
	uint64_t late_ticks;  /* skipped so far */
	uint64_t max_lateness_ns;
	uint64_t nr_sleeps;
};

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

/* The first deadline is now. rate_hz 0: as fast as can be. */
void ticker_start(struct ticker *ticker, double rate_hz);

/*
 * Sleep until the next deadline or until_ns, whichever is first, but never longer
 * than TICKER_MAX_SLEEP_NS, so that a signal that came just before is noticed.
 * Returns the time at which it came back; *ret_due tells whether the deadline was
 * reached (a tick is to be taken).
 */
#define TICKER_MAX_SLEEP_NS 100000000u
uint64_t ticker_wait(struct ticker *ticker, uint64_t until_ns, bool *ret_due);
