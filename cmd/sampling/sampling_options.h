/* SPDX-License-Identifier: MIT */
/* The options of the commands that sample a process: attach, run and top. */
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
	const char *process_name; /* --name: a pattern; NULL: none */
	struct engine_options engine;
	double rate_hz;
	uint64_t duration_ns; /* 0: unlimited */
	uint64_t loop_ns;     /* length of a period; 0: the run is one */
	uint32_t nr_keep;     /* number of periods whose files are kept; 0: all */
	struct outputs outputs;
	const char *stats_path;
	struct mode_choice mode;
	struct name_choice threads;
	struct profile_options profile;
	struct artefact_options layout; /* of the outputs */
	struct sampler_extras extras;
	bool cpu_is_given; /* --cpu or --no-cpu was given */
	struct target_wait wait;
	bool read_only;	   /* never write to the target */
	bool full_command; /* show all arguments of the target */
	bool subprocesses; /* also what it starts */
	bool quiet;
	bool verbose;
};

/*
 * The rows of the options, and the values that the options start from. The first group, which
 * names a running process, is of attach only.
 */
enum { SAMPLING_OPTIONS_NR_GROUPS = 19 };
extern const struct option_group sampling_options_groups[SAMPLING_OPTIONS_NR_GROUPS];
struct sampling_options sampling_options_default(void);

/* Of these, the groups of those that concern sampling alone, for other commands. */
enum {
	SAMPLING_NR_RATE_OPTIONS = 7,
	SAMPLING_NR_STACK_OPTIONS = 4,
	SAMPLING_NR_COLLECTOR_OPTIONS = 2
};
extern const struct option_spec sampling_rate_options[SAMPLING_NR_RATE_OPTIONS];
extern const struct option_spec sampling_writing_options[1];
extern const struct option_spec sampling_stack_options[SAMPLING_NR_STACK_OPTIONS];
extern const struct option_spec sampling_collector_options[SAMPLING_NR_COLLECTOR_OPTIONS];

/*
 * Choose what is left open after all outputs are named: their formats (outputs_choose()), and
 * what is read beside the stacks. Returns false after printing an error: EXIT_USAGE.
 */
bool sampling_options_choose(struct sampling_options *options);

/* The same for a view of the running process, which shows thread states and has no outputs. */
bool sampling_options_choose_view(struct sampling_options *options);
