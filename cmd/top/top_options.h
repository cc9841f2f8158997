/* SPDX-License-Identifier: MIT */
/* The options of pysample top. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/sampling/sampling_options.h"

struct top_options {
	struct sampling_options sampling; /* must be first */
	bool is_batch, is_json;
	uint32_t nr_screens;  /* in a batch; 0: until the process ends */
	uint64_t interval_ns; /* between two screens; 0: the default */
	uint32_t max_rows;    /* in a batch; 0: all */
};

enum { TOP_OPTIONS_NR_GROUPS = 13 };
extern const struct option_group top_options_groups[TOP_OPTIONS_NR_GROUPS];

struct top_options top_options_default(void);

/* Choose what is left open. Returns false after printing an error: EXIT_USAGE. */
bool top_options_choose(struct top_options *options);
