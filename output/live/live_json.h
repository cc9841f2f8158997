/* SPDX-License-Identifier: MIT */
/* Writes a refresh of a live view as one JSON object on a line: docs/formats.md. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "output/live/live.h"
#include "output/live/live_figures.h"
#include "output/run/run.h"

/* What is known beside the samples. */
struct live_context {
	const struct run *run; /* since the start or the last reset; borrowed */
	uint64_t time_ns;      /* CLOCK_REALTIME */
	double cpu_share;      /* CPU time of the processes by elapsed time; negative: unknown */
	uint32_t max_rows;     /* 0: all */
};

/*
 * Write the object and a newline to out, and flush it. figures are of live's profile, sorted.
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int live_write_json(const struct live *live, const struct live_figures *figures,
		    const struct live_context *context, FILE *out);
