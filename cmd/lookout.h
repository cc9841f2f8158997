/* SPDX-License-Identifier: MIT */
/* When a process that has no interpreter yet is looked at again, and when it is searched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Looks at one process; times are those of CLOCK_MONOTONIC. */
struct lookout {
	uint64_t start_ns;
	uint64_t end_ns; /* the look at or after that is the last */

	/* Private. */
	uint64_t pause_ns;    /* the next one */
	uint64_t searched_ns; /* when it was searched last */
	int err;	      /* what that gave; 0: it was never searched */
};

/* Looks from now on for wait_ns; 0: one look. */
void lookout_init(struct lookout *lookout, uint64_t now_ns, uint64_t wait_ns);

/*
 * Whether a look has to search, at now_ns; unchanged tells whether the mappings are those
 * of the last search. A program without Python is not searched again before it has loaded
 * something. A CPython without an interpreter is, since one can begin in memory that is
 * there: at every look for half a second, while that is likely, then twice a second. The
 * last look always searches.
 */
bool lookout_must_search(const struct lookout *lookout, bool unchanged, uint64_t now_ns);

/* It was searched, which gave err, an error of runtime_find(). */
void lookout_searched(struct lookout *lookout, int err, uint64_t now_ns);

/*
 * How long to sleep until the next look: 1 ms at first, then twice as long each time, 50 ms
 * at most. After half a second it is at least so long that looks which take look_ns each
 * take a twentieth of the time, but half a second at most. Never beyond the last look.
 */
uint64_t lookout_pause_ns(struct lookout *lookout, uint64_t now_ns, uint64_t look_ns);
