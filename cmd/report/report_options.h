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

/* Strings are those of argv. report_options_done() frees the rest. */
struct report_options {
	const char **paths; /* of the recordings; owned array; "-" is stdin */
	uint32_t nr_paths;
	const char **bases; /* the same of --diff */
	uint32_t nr_bases;
	struct outputs outputs;
	struct profile_options profile;
	struct mode_choice mode; /* if none was made, that of the recording */
	struct artefact_options layout;
	bool has_to;		     /* filter.to_ns was given */
	struct replay_filter filter; /* refers to what follows */
	const char **threads;	     /* owned array */
	struct text included, excluded;
	regex_t include, exclude; /* compiled if filter refers to them */
	bool has_fail_above;
	double fail_above_percent;
	bool info; /* only what header and trailer say */
	bool json;
	bool quiet;
};

/* Their rows. */
enum { REPORT_OPTIONS_NR_GROUPS = 10 };
extern const struct option_group report_options_groups[REPORT_OPTIONS_NR_GROUPS];

/*
 * Parse the arguments; argv[0] is the command's name. EXIT_OK, and all outputs have a format; or
 * another status after an error was printed. *ret_done if --help was all to be done, and has
 * been. options must not be moved; report_options_done() is to be called in any case.
 */
enum exit_status report_options_parse(int argc, char **argv, struct report_options *options,
				      bool *ret_done);
void report_options_done(struct report_options *options);
