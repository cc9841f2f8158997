/* SPDX-License-Identifier: MIT */
/* The modes of a profile: which samples it shows, what they weigh, and what that is called. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

enum profile_mode {
	PROFILE_WALL, /* every sample, by the time that passed */
	PROFILE_CPU,  /* by the CPU time that the thread used; those that used none are left out */
	PROFILE_GIL,  /* those that hold the GIL, by the time that passed */
	PROFILE_EXCEPTION, /* those that handle an exception, by the time that passed */
	PROFILE_COUNT,	   /* every sample as one: threads of core files, where no time passes */
	NR_PROFILE_MODES,
};

/*
 * Whether a profile of that mode shows a sample, and its weight in *ret_ns then. The weight
 * of one that is left out is nobody's: no other sample has it as well.
 */
bool profile_mode_shows(enum profile_mode mode, uint32_t flags, uint64_t wall_ns, uint64_t cpu_ns,
			uint64_t *ret_ns);

/* One word in lower case, as on the command line; stable. */
const char *profile_mode_name(enum profile_mode mode);

/* False if no mode has that name. */
bool profile_mode_parse(const char *name, enum profile_mode *ret_mode);

/* Whether its weights are nanoseconds; else a sample weighs 1. */
bool profile_mode_is_time(enum profile_mode mode);

/* What its seconds are: "CPU time"; of one without, what is counted. */
const char *profile_mode_time(enum profile_mode mode);

/* What the numbers of collapsed stacks are: "samples", "microseconds", "threads"; stable. */
const char *profile_mode_unit(enum profile_mode mode);
