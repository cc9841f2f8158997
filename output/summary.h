/* SPDX-License-Identifier: MIT */
/* A table for people: what was sampled, and the functions that took the most time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/profile.h"
#include "output/run_info.h"
#include "sampler/sample.h"

struct summary_options {
	uint32_t max_rows; /* of the table; a line says how many more there are */
	unsigned columns;  /* of the terminal; 0: as wide as needed */
	bool colour;	   /* bold and dim by ANSI escapes */
};

/*
 * Write the summary of profile to out and flush it.
 *
 * Rows are sorted by self time, then total time, then name. Percentages are of
 * the time that all samples stand for; the self ones add up to 100, with a row
 * LABEL_NO_PYTHON_FRAMES for what has no function. Paths and names that are too
 * long for the terminal lose their beginning. Widths below 60 are taken for 60.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int summary_write(const struct profile *profile, const struct sampler_stats *stats,
		  const struct run_info *info, const struct summary_options *options, FILE *out);
