/* SPDX-License-Identifier: MIT */
/* When to look again at a process that has no interpreter yet, and when to search it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The looks at one process. Times are CLOCK_MONOTONIC. */
struct search_schedule {
	uint64_t start_ns;
	uint64_t end_ns; /* the first look at or after this time is the last */

	/* Private. */
	uint64_t pause_ns;    /* before the next look */
	uint64_t searched_ns; /* time of the last search */
	int err;	      /* result of the last search; 0: none yet */
};

/* Schedule looks for wait_ns from now_ns on; 0 means one look. */
void search_schedule_init(struct search_schedule *schedule, uint64_t now_ns, uint64_t wait_ns);

/*
 * Whether a search is due at now_ns. unchanged means that the mappings are those of the last
 * search. A program without Python is searched again only after it has loaded something. A
 * CPython without an interpreter can start one in memory that is already mapped: it is searched
 * at every look for half a second, when this is likely, then twice a second. The last look always
 * searches.
 */
bool search_schedule_is_due(const struct search_schedule *schedule, bool unchanged,
			    uint64_t now_ns);

/* Record a search that returned err, an error of runtime_find(). */
void search_schedule_record(struct search_schedule *schedule, int err, uint64_t now_ns);

/*
 * Returns how long to sleep before the next look: 1 ms at first, then twice as long each time, up
 * to 50 ms. After half a second the pause is long enough that looks of look_ns each take at most
 * a twentieth of the time, but never longer than half a second. The sleep never extends past the
 * last look.
 */
uint64_t search_schedule_pause_ns(struct search_schedule *schedule, uint64_t now_ns,
				  uint64_t look_ns);
