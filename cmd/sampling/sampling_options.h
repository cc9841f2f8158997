/* SPDX-License-Identifier: MIT */
/* The options of the commands that sample a process: attach and run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/outputs.h"
#include "cmd/sampling/engine.h"
#include "cmd/shared_options.h"
#include "cmd/target.h"
#include "output/artefact.h"
#include "output/profile/profile.h"
#include "sampler/sampler.h"

struct sampling_options {
	struct engine_options engine;
	double rate_hz;
	uint64_t duration_ns; /* 0: none */
	struct outputs outputs;
	const char *stats_path;
	struct mode_choice mode;
	struct profile_options profile;
	struct artefact_options layout; /* of the outputs */
	struct sampler_looks looks;
	bool cpu_is_given; /* looks.cpu is what was asked for */
	struct target_wait wait;
	bool read_only; /* nothing is ever written to the target */
	bool quiet;
	bool verbose;
};

/* Their rows, for options that begin as sampling_options_default() has them. */
enum { SAMPLING_OPTIONS_NR_GROUPS = 13 };
extern const struct option_group sampling_options_groups[SAMPLING_OPTIONS_NR_GROUPS];
struct sampling_options sampling_options_default(void);

/*
 * Choose what was left open, when all outputs are named: their formats (outputs_choose()), and
 * what is looked at beside the stacks. False after an error was printed: EXIT_USAGE.
 */
bool sampling_options_choose(struct sampling_options *options);
