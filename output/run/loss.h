/* SPDX-License-Identifier: MIT */
/* Names and shares of lost samples, for reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* Returns the name of a loss: one word in lower case, as in the statistics; stable. */
const char *loss_name(enum sample_loss loss);

/* Returns the samples lost for any reason. */
uint64_t loss_total(const struct sampler_stats *stats);

/* Returns the lost samples in percent of those tried; 0 if none was tried. */
double loss_percent(const struct sampler_stats *stats);

/*
 * Whether more than 2 % of the samples were lost because their look had to wait until the
 * thread slept (LOSS_LATE). Short bursts are under-represented then.
 */
bool loss_hides_bursts(const struct sampler_stats *stats);

/* The same, in words. */
#define LOSS_BURSTS_TEXT "code that runs for only a few milliseconds at a time is under-represented"
