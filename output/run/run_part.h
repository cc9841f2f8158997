/* SPDX-License-Identifier: MIT */
/* A part of a run: what happened since an earlier state of it. */
#pragma once

#include "output/run/run.h"

/*
 * Leave only the counters since an earlier state of the same run, which ended when that state was
 * taken. Nothing changes if earlier is all zero. Of the largest lateness only the class is known
 * (sampler/histogram.h).
 */
void stats_subtract(struct sampler_stats *stats, const struct sampler_stats *earlier);

/*
 * The same for a whole description. Its strings and settings stay; earlier's strings are not
 * used. The peak of our memory is that of the whole run.
 */
void run_subtract(struct run *run, const struct run *earlier);
