/* SPDX-License-Identifier: MIT */
/* Stretches of a thread's samples that have a flag: the markers of the Firefox Profiler. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/thread_samples.h"

enum gecko_marker_kind {
	GECKO_COLLECTS, /* garbage */
	GECKO_HAS_GIL,
	GECKO_WAITS_FOR_GIL,
	GECKO_IN_JIT,	   /* CPython's: lines may be some statements late */
	GECKO_APPROXIMATE, /* stacks were read while the thread ran */
	NR_GECKO_MARKERS,
};

struct gecko_marker {
	enum gecko_marker_kind kind;
	uint64_t begin_ns,
		end_ns; /* from where its first sample's time begins, to its last's end */
};

/* Where in a thread's samples one is. */
struct gecko_markers {
	const struct profile_sample *rows;
	const uint32_t *order;
	uint32_t first, next, end;   /* in the order */
	enum gecko_marker_kind kind; /* the next to be looked for there */
};

/* Begin with a thread's samples; all of it is borrowed. */
void gecko_markers_init(struct gecko_markers *markers, const struct profile *profile,
			const struct thread_samples *samples, const struct thread_slice *slice);

/* The next one, by where they begin; false if there is none. */
bool gecko_markers_next(struct gecko_markers *markers, struct gecko_marker *ret_marker);

/* What a kind is called, by which it can be searched for; stable. */
const char *gecko_marker_name(enum gecko_marker_kind kind);
