/* SPDX-License-Identifier: MIT */
/* The options of pysample report. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/outputs.h"
#include "cmd/shared_options.h"
#include "output/artefact.h"
#include "output/profile/profile.h"
#include "output/recording/replay.h"
#include "output/text/text.h"

/* Strings are borrowed from argv. report_options_done() frees the rest. */
struct report_options {
	const char **paths; /* owned array; the recordings; "-": stdin */
	uint32_t nr_paths;
	const char **bases; /* owned array; the recordings of --diff */
	uint32_t nr_bases;
	struct outputs outputs;
	char *page_path; /* owned; of outputs; NULL: none is needed */
	struct profile_options profile;
	struct mode_choice mode; /* if none was chosen, the recording's mode is used */
	struct artefact_options layout;
	bool has_to;		     /* filter.to_ns was given */
	struct replay_filter filter; /* points to the members below */
	struct name_choice threads, processes;
	struct text included, excluded;
	regex_t include, exclude; /* compiled if filter refers to them */
	bool has_fail_above;
	double fail_above_percent;
	bool info; /* print only the header and the trailer */
	bool json;
	bool quiet;
};

/* The rows of the options. */
enum { REPORT_OPTIONS_NR_GROUPS = 13 };
extern const struct option_group report_options_groups[REPORT_OPTIONS_NR_GROUPS];

/*
 * Parse the arguments; argv[0] is the command's name. Returns EXIT_OK, and all outputs have a
 * format; or another status after printing an error. *ret_done is true if --help was printed and
 * nothing is left to do. options must not be moved. report_options_done() must follow in any
 * case.
 */
enum exit_status report_options_parse(int argc, char **argv, struct report_options *options,
				      bool *ret_done);
void report_options_done(struct report_options *options);
