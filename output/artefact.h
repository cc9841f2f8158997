/* SPDX-License-Identifier: MIT */
/* What a writer is given: one profile, the runs it came of, and how it is to look. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/profile/profile.h"
#include "output/run/run.h"

/* How text is laid out, and what of it is wanted. */
struct artefact_options {
	uint32_t max_rows;   /* of a table; a line says how many more there are */
	unsigned columns;    /* of the terminal; 0: as wide as needed */
	bool colour;	     /* bold and dim by ANSI escapes */
	bool header;	     /* collapsed: lines that say what the runs were come first */
	bool no_source;	     /* source lines are not read and not shown */
	bool tree;	     /* summary: callers above callees, as a tree */
	const char *callers; /* summary: of the functions that match; borrowed, NULL */
	const char *callees;
};

/* All borrowed. */
struct artefact {
	const struct profile *profile;
	bool has_base;		/* the profile has two sides, to be compared */
	const struct run *runs; /* what the profile came of, at least one */
	uint32_t nr_runs;
	const struct run *base_runs; /* the same of its base */
	uint32_t nr_base_runs;
	struct artefact_options options;
};
