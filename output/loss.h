/* SPDX-License-Identifier: MIT */
/* Samples that were not accepted, for those who report them. */
#pragma once

#include <stdint.h>

#include "sampler/sample.h"

/* One word in lower case, as in the statistics; stable. */
const char *loss_name(enum sample_loss loss);

/* Samples lost for any reason. */
uint64_t loss_total(const struct sampler_stats *stats);

/* Samples lost of all that were tried, in percent; 0 if none was. */
double loss_percent(const struct sampler_stats *stats);
