/* SPDX-License-Identifier: MIT */
/* The options of pysample core. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/command.h"
#include "cmd/core/core_dump.h"
#include "cmd/outputs.h"
#include "cmd/shared_options.h"
#include "output/artefact.h"
#include "output/profile/profile.h"

/* Strings are those of the arguments. */
struct core_options {
	const char **paths; /* owned; of core files; "-": stdin */
	size_t nr_paths;
	bool json;
	bool verbose;
	struct core_file_places places;
	struct core_dump_options dump;

	/* Of a profile, which is made instead of a dump if outputs were named. */
	bool wants_profile;
	bool crashed_only; /* of each core only the thread that got the signal */
	struct outputs outputs;
	struct profile_options profile;
	struct artefact_options layout;
};

/* Their rows. */
enum { CORE_OPTIONS_NR_GROUPS = 7 };
extern const struct option_group core_options_groups[CORE_OPTIONS_NR_GROUPS];

/*
 * EXIT_OK, or another status after an error was printed; *ret_done if --help was all to be
 * done. core_options_done() is to be called either way.
 */
enum exit_status core_options_parse(int argc, char **argv, struct core_options *options,
				    bool *ret_done);
void core_options_done(struct core_options *options);
