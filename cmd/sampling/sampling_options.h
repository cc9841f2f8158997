/* SPDX-License-Identifier: MIT */
/* The options of the commands that sample a process: attach and run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/outputs.h"
#include "cmd/sampling/engine.h"
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
	struct profile_options profile;
	struct artefact_options layout; /* of the outputs */
	struct sampler_looks looks;
	bool cpu_is_given; /* looks.cpu is what was asked for */
	struct target_wait wait;
	bool read_only; /* nothing is ever written to the target */
	bool quiet;
	bool verbose;
};

/* A command's own part of it; --help prints usage, the options and formats, examples. */
struct sampling_command {
	const char *usage;
	const char *examples;
	bool operands_end; /* options stand in front of its operands only */
};

/*
 * Parse the options in front of the first operand, or, unless operands_end is set, also those
 * behind it; argv[0] is the command's name. *ret_first is then the index of the first operand.
 * The options borrow the strings of argv. EXIT_OK; or another status after an error was
 * printed. *ret_done if --help was all to be done, and has been.
 * sampling_options_choose() is to follow.
 */
enum exit_status sampling_options_parse(int argc, char **argv,
					const struct sampling_command *command,
					struct sampling_options *options, int *ret_first,
					bool *ret_done);

/*
 * Choose what was left open, when all outputs are named: their formats (outputs_choose()), and
 * what is looked at beside the stacks. False after an error was printed: EXIT_USAGE.
 */
bool sampling_options_choose(struct sampling_options *options);
