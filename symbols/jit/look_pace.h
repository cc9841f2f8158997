/* SPDX-License-Identifier: MIT */
/*
 * When to look again for what a process may tell of the code that it makes, if something is asked
 * for that was not told.
 *
 * The first look comes at once. Then one that told what was asked lets the next come
 * LOOK_PACE_MIN_WAIT_NS later, as new code comes in bursts; each that did not doubles that, up to
 * LOOK_PACE_MAX_WAIT_NS: nothing may ever tell of it. A look that is dear lets the next come
 * LOOK_PACE_REST_PER_LOOK times as much later as it took, at least, so that they take a twentieth of
 * the time at most: a process may have lists and files that take seconds. Of the first look that
 * does not count: it reads much that is read once, as the symbols of all modules.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOOK_PACE_MIN_WAIT_NS	100000000u
#define LOOK_PACE_MAX_WAIT_NS	1000000000u
#define LOOK_PACE_REST_PER_LOOK 20u

/* Looks at one process; all zero there was none. Times are those of CLOCK_MONOTONIC. Private. */
struct look_pace {
	uint64_t look_ns; /* the time that the last look was for; 0: there was none */
	uint64_t wait_ns; /* from there to the next one, without what follows */
	uint64_t rest_ns; /* by what the last one took; 0: it was the first */
};

/*
 * Whether to look for what is asked for at time_ns, which was told before or not; what was told is
 * looked for again after LOOK_PACE_MAX_WAIT_NS, as it may have ended. Never for a time before that
 * of the last look: what is asked for does not come in the order of its times.
 */
bool look_pace_is_due(const struct look_pace *pace, bool is_told, uint64_t time_ns);

/* There was a look for time_ns, which took so long, and told what was asked or did not. */
void look_pace_looked(struct look_pace *pace, bool has_told, uint64_t time_ns, uint64_t took_ns);
