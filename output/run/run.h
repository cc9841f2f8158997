/* SPDX-License-Identifier: MIT */
/*
 * One run of the sampler: what was sampled, how, what it cost and what was lost. Every
 * artefact says so of each run that is in it.
 */
#pragma once

#include "output/run/run_info.h"
#include "sampler/sample.h"

struct run {
	struct run_info info;
	struct sampler_stats stats;
};

/*
 * Call pair() for everything that is known of the run, always in the same order: a name as
 * in --stats-json ("asked_hz", "lost.grew", …; stable) and its value as text, numbers with
 * all their digits. Both are valid during the call only.
 */
void run_tell(const struct run *run,
	      void (*pair)(void *context, const char *name, const char *value), void *context);

/* A run that is told by its pairs, with what its strings are kept in. All zero it is empty. */
struct run_told {
	struct run run;
	char **strings; /* owned */
	uint32_t nr_strings, max_strings;
};

/*
 * Take one pair of run_tell(), of this version's or another's: a name that is not known is
 * passed over, and so is a value that makes no sense. The last one of a name counts. 0 or
 * -ENOMEM.
 */
int run_told_take(struct run_told *told, const char *name, const char *value);

/* Free what it holds; it is empty then. */
void run_told_done(struct run_told *told);
