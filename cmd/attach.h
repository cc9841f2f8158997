/* SPDX-License-Identifier: MIT */
/* One run of attach. */
#pragma once

#include <stdbool.h>

#include "cmd/attach_options.h"
#include "cmd/output_file.h"
#include "cmd/target.h"
#include "output/profile.h"
#include "sampler/sampler.h"

/* What a run reads and writes. */
struct attach {
	struct attach_options options;
	struct target target;
	struct sampler *sampler;
	struct profile *profile;
	struct output_file output;
	struct output_file stats_output;
	struct sampler_stats stats;	      /* of all programs together */
	unsigned int nr_followed;	      /* programs that came after the first */
	enum target_next after;		      /* what came after the last one, if it is gone */
	struct message not_followed;	      /* why that was refused */
	bool begun;			      /* there are counters to be told */
	enum frame_cache_reason cache_reason; /* of the last program */
};
