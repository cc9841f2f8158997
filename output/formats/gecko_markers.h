/* SPDX-License-Identifier: MIT */
/* Periods in which a thread's samples have a flag: the markers of the Firefox Profiler. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/thread_samples.h"

enum gecko_marker_kind {
	GECKO_COLLECTS, /* runs the garbage collector */
	GECKO_HAS_GIL,
	GECKO_WAITS_FOR_GIL,
	GECKO_IN_JIT,	   /* in CPython's JIT: lines may be a few statements late */
	GECKO_APPROXIMATE, /* stacks were read while the thread ran */
	GECKO_WAITS,	   /* idle: what PROFILE_BUSY hides */
	NR_GECKO_MARKERS,
};

struct gecko_marker {
	enum gecko_marker_kind kind;
	/* Start of the first sample and end of the last. */
	uint64_t begin_ns, end_ns;
};

/* Position among the markers of a thread. */
struct gecko_markers {
	const struct profile_sample *rows;
	const uint32_t *order;
	uint32_t first, next, end;   /* indices into order */
	enum gecko_marker_kind kind; /* next kind to try at sample next */
};

/* Begin with a thread's samples; everything is borrowed. */
void gecko_markers_init(struct gecko_markers *markers, const struct profile *profile,
			const struct thread_samples *samples, const struct thread_slice *slice);

/* Find the next marker, by start time. Returns false at the end. */
bool gecko_markers_next(struct gecko_markers *markers, struct gecko_marker *ret_marker);

/* Returns the name of a kind, which users can search for; stable. */
const char *gecko_marker_name(enum gecko_marker_kind kind);
