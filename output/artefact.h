/* SPDX-License-Identifier: MIT */
/* What a writer gets: one profile, the runs it comes from, and how to lay it out. Data only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/profile/profile.h"
#include "output/run/run.h"

/* Layout and contents of text output. */
struct artefact_options {
	uint32_t max_rows;   /* limit for a table; a line reports how many more there are */
	unsigned columns;    /* width of the terminal; 0: as wide as needed */
	bool colour;	     /* bold and dim, with ANSI escapes */
	bool header;	     /* collapsed: begin with lines that describe the runs */
	bool no_source;	     /* neither read nor show source lines */
	bool hides_idle;     /* page: begin without samples of threads that wait */
	bool tree;	     /* summary: a tree with callers above callees */
	const char *explain; /* summary: a function that is explained; borrowed, or NULL */
};

/* Everything is borrowed. */
struct artefact {
	const struct profile *profile;
	bool has_base;		/* the profile has two sides to compare */
	const struct run *runs; /* of the profile; at least one */
	uint32_t nr_runs;
	const struct run *base_runs; /* the same for its base */
	uint32_t nr_base_runs;
	struct artefact_options options;
};
