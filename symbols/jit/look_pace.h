/* SPDX-License-Identifier: MIT */
/*
 * Decides when to look again at the sources of a process's JIT code, if an address is asked for
 * that they did not cover.
 *
 * The first look comes at once. A look that found the code allows the next one
 * LOOK_PACE_MIN_WAIT_NS later, since new code comes in bursts. Each look that did not doubles the
 * wait, up to LOOK_PACE_MAX_WAIT_NS: it may be that no source ever covers the code. An expensive
 * look, at lists and files that take seconds, is followed by a rest of at least
 * LOOK_PACE_REST_PER_LOOK times its duration, so looks take at most about a twentieth of the
 * time. The first look is exempt: it reads much that is read only once, such as the symbols of
 * all modules.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOOK_PACE_MIN_WAIT_NS	100000000u
#define LOOK_PACE_MAX_WAIT_NS	1000000000u
#define LOOK_PACE_REST_PER_LOOK 20u

/* The looks at one process. All zero: none yet. Times are of CLOCK_MONOTONIC. Private. */
struct look_pace {
	uint64_t look_ns; /* the time the last look was for; 0: none */
	uint64_t wait_ns; /* from there to the next one, without the rest */
	uint64_t rest_ns; /* minimum wait due to the last look's duration; 0 after the first look */
};

/*
 * Whether a look is due for an address asked for at time_ns. is_covered: the sources covered it
 * before; as the code may have ended, it is looked up again after LOOK_PACE_MAX_WAIT_NS. Never
 * due for a time before that of the last look: queries do not come in the order of their times.
 */
bool look_pace_is_due(const struct look_pace *pace, bool is_covered, uint64_t time_ns);

/* Record a look for time_ns that took took_ns. has_found: it found what was asked for. */
void look_pace_record(struct look_pace *pace, bool has_found, uint64_t time_ns, uint64_t took_ns);
