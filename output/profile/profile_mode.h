/* SPDX-License-Identifier: MIT */
/*
 * The modes of a profile: which samples it shows, what they weigh, and what the weights are
 * called.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

enum profile_mode {
	PROFILE_WALL,	   /* every sample, by elapsed time */
	PROFILE_BUSY,	   /* samples of threads that do not wait, by elapsed time */
	PROFILE_CPU,	   /* samples that used CPU time, by that time */
	PROFILE_GIL,	   /* samples that hold the GIL, by elapsed time */
	PROFILE_EXCEPTION, /* samples that handle an exception, by elapsed time */
	PROFILE_COUNT,	   /* every sample as 1: threads of core files, where no time passes */
	NR_PROFILE_MODES,
};

/*
 * Whether a profile of that mode shows a sample, and if so its weight in *ret_ns. The
 * weight of a sample that is not shown is dropped, not added to another.
 */
bool profile_mode_shows(enum profile_mode mode, uint32_t flags, uint64_t wall_ns, uint64_t cpu_ns,
			uint64_t *ret_ns);

/* One word in lower case, as on the command line; stable. */
const char *profile_mode_name(enum profile_mode mode);

/* Returns false if no mode has that name. */
bool profile_mode_parse(const char *name, enum profile_mode *ret_mode);

/* Whether weights are nanoseconds; else each sample weighs 1. */
bool profile_mode_is_time(enum profile_mode mode);

/* Returns what the time of a mode is: "CPU time"; for PROFILE_COUNT what is counted. */
const char *profile_mode_time(enum profile_mode mode);

/* Returns the unit of collapsed stacks: "samples", "microseconds", "threads"; stable. */
const char *profile_mode_unit(enum profile_mode mode);
