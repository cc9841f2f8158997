/* SPDX-License-Identifier: MIT */
/* The options of pysample core. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/core/core_report.h"
#include "cmd/outputs.h"
#include "cmd/shared_options.h"
#include "output/artefact.h"
#include "output/profile/profile.h"

/* Strings are borrowed from the arguments. */
struct core_options {
	const char **paths; /* owned; core files; "-": stdin */
	size_t nr_paths;
	bool json;
	bool verbose;
	bool full_command; /* show all arguments */
	struct core_file_places places;
	struct core_report_options report;

	/* For a profile, which is made instead of a report if outputs were named. */
	bool wants_profile;
	bool crashed_only; /* only the thread of each core that got the signal */
	struct outputs outputs;
	struct profile_options profile;
	struct artefact_options layout;
};

/* The rows of the options. */
enum { CORE_OPTIONS_NR_GROUPS = 8 };
extern const struct option_group core_options_groups[CORE_OPTIONS_NR_GROUPS];

/*
 * Parse the arguments. Returns EXIT_OK, or another status after printing an error. *ret_done is
 * true if --help was printed and nothing is left to do. core_options_done() must follow in any
 * case.
 */
enum exit_status core_options_parse(int argc, char **argv, struct core_options *options,
				    bool *ret_done);
void core_options_done(struct core_options *options);
