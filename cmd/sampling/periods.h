/* SPDX-License-Identifier: MIT */
/*
 * The periods of a run with --loop, each of which has its own files (rotation.h). Without it the
 * run is one period. Data only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/sampling/kept_files.h"
#include "output/run/run.h"

/* All zero, except for kept.max_periods: the first period. */
struct periods {
	uint64_t number;	   /* of the current period - 1 */
	uint64_t due_ns;	   /* CLOCK_MONOTONIC of the next rotation; 0: not set yet */
	struct run before;	   /* the run as of the end of the last period; numbers only */
	uint64_t max_idle_threads; /* of a finished period: each has counted them again */
	uint64_t nr_other_samples; /* of the finished periods, in PROFILE_OTHER_STACKS */
	uint64_t nr_unwritten;	   /* samples that no file of a finished period has */
	bool has_failed;	   /* some file could not be written */
	bool is_failing;	   /* in the last period, which was reported */
	struct kept_files kept;
};
