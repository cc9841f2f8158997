/* SPDX-License-Identifier: MIT */
/* Decides when to look again at a process that has no interpreter yet, and when to search it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The looks at one process. Times are CLOCK_MONOTONIC. */
struct lookout {
	uint64_t start_ns;
	uint64_t end_ns; /* the first look at or after this time is the last */

	/* Private. */
	uint64_t pause_ns;    /* before the next look */
	uint64_t searched_ns; /* time of the last search */
	int err;	      /* result of the last search; 0: none yet */
};

/* Look for wait_ns from now_ns on; 0 means one look. */
void lookout_init(struct lookout *lookout, uint64_t now_ns, uint64_t wait_ns);

/*
 * Whether the look at now_ns must search. unchanged means that the mappings are those of the last
 * search. A program without Python is searched again only after it has loaded something. A
 * CPython without an interpreter can start one in memory that is already mapped: it is searched
 * at every look for half a second, when this is likely, then twice a second. The last look always
 * searches.
 */
bool lookout_must_search(const struct lookout *lookout, bool unchanged, uint64_t now_ns);

/* Record a search that returned err, an error of runtime_find(). */
void lookout_searched(struct lookout *lookout, int err, uint64_t now_ns);

/*
 * Returns how long to sleep before the next look: 1 ms at first, then twice as long each time, up
 * to 50 ms. After half a second the pause is long enough that looks of look_ns each take at most
 * a twentieth of the time, but never longer than half a second. The sleep never extends past the
 * last look.
 */
uint64_t lookout_pause_ns(struct lookout *lookout, uint64_t now_ns, uint64_t look_ns);
