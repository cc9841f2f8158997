/* SPDX-License-Identifier: MIT */
/*
 * Decides when to read the sources of a process's JIT code again, if an address is looked up that
 * they did not cover.
 *
 * The first refresh is due at once. One that found the code allows the next one
 * REFRESH_MIN_WAIT_NS later, since new code comes in bursts. Each one that did not doubles the
 * wait, up to REFRESH_MAX_WAIT_NS: it may be that no source ever covers the code. An expensive
 * refresh, of lists and files that take seconds, is followed by a rest of at least
 * REFRESH_REST_FACTOR times its duration, so refreshes take at most about a twentieth of the
 * time. The first one is exempt: it reads much that is read only once, such as the symbols of all
 * modules.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REFRESH_MIN_WAIT_NS 100000000u
#define REFRESH_MAX_WAIT_NS 1000000000u
#define REFRESH_REST_FACTOR 20u

/* The refreshes of one process. All zero: none yet. Times are of CLOCK_MONOTONIC. Private. */
struct refresh_backoff {
	uint64_t refreshed_ns; /* the time that the last refresh was for; 0: none */
	uint64_t wait_ns;      /* from there to the next one, without the rest */
	uint64_t rest_ns;      /* minimum wait due to the last one's duration; 0 after the first */
};

/*
 * Whether a refresh is due for an address looked up at time_ns. is_covered: the sources covered it
 * before; as the code may have ended, it is looked up again after REFRESH_MAX_WAIT_NS. Never due
 * for a time before that of the last refresh: queries do not come in the order of their times.
 */
bool refresh_backoff_is_due(const struct refresh_backoff *backoff, bool is_covered,
			    uint64_t time_ns);

/* Record a refresh for time_ns that took took_ns. has_found: it found what was looked up. */
void refresh_backoff_record(struct refresh_backoff *backoff, bool has_found, uint64_t time_ns,
			    uint64_t took_ns);
