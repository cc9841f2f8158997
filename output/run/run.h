/* SPDX-License-Identifier: MIT */
/*
 * One run of the sampler: what was sampled, how, what it cost and what was lost. Every artefact
 * reports this for each of its runs.
 */
#pragma once

#include "output/run/run_info.h"
#include "sampler/sample.h"

struct run {
	struct run_info info;
	struct sampler_stats stats;
};

/*
 * Call pair() for each known item of the run, always in the same order. Names are as in
 * --stats-json ("requested_hz", "lost.moved", …) and stable. Values are text, numbers with all
 * their digits. Both are valid during the call only.
 */
void run_for_each_pair(const struct run *run,
		       void (*pair)(void *context, const char *name, const char *value),
		       void *context);

/* A run rebuilt from its pairs, with the storage of its strings. Empty when all zero. */
struct stored_run {
	struct run run;
	char **strings; /* owned */
	uint32_t nr_strings, max_strings;
};

/*
 * Set one item from a pair of run_for_each_pair(), of this version or another. Unknown names and
 * malformed values are ignored. A later pair of the same name replaces an earlier one. Returns 0
 * or -ENOMEM.
 */
int stored_run_set(struct stored_run *stored, const char *name, const char *value);

/* Free the strings and empty stored. */
void stored_run_done(struct stored_run *stored);
