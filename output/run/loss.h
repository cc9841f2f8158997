/* SPDX-License-Identifier: MIT */
/* Samples that were not accepted, for those who report them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* One word in lower case, as in the statistics; stable. */
const char *loss_name(enum sample_loss loss);

/* Samples lost for any reason. */
uint64_t loss_total(const struct sampler_stats *stats);

/* Samples lost of all that were tried, in percent; 0 if none was. */
double loss_percent(const struct sampler_stats *stats);

/*
 * Whether so many looks were dropped because they had to wait until the thread slept (LOSS_LATE)
 * that what it does in short bursts is told too rarely: more than 2 %.
 */
bool loss_hides_bursts(const struct sampler_stats *stats);

/* What that means, for people. */
#define LOSS_BURSTS_TEXT "what runs for less than some milliseconds at a time is under-represented"
