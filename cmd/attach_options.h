/* SPDX-License-Identifier: MIT */
/* The options of pysample attach. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/command.h"
#include "cmd/target.h"
#include "output/profile.h"
#include "sampler/sampler.h"

enum format { FORMAT_AUTO, FORMAT_COLLAPSED, FORMAT_SUMMARY }; /* FORMAT_AUTO: not given */

struct attach_options {
	pid_t pid;
	double rate_hz;	      /* 0: as fast as can be */
	bool jitter;	      /* ticks anywhere in their intervals */
	uint64_t duration_ns; /* 0: none */
	const char *output_path;
	const char *stats_path;
	enum format format;
	struct profile_options profile;
	struct sampler_looks looks;
	struct target_wait wait;
	bool read_only; /* nothing is ever written to the target */
	bool quiet;
	bool verbose;
};

/*
 * Parse the arguments; argv[0] is the command's name, whose strings the options borrow.
 * EXIT_OK, and format is never FORMAT_AUTO; or another status after an error was
 * printed. *ret_done if --help was all to be done, and has been.
 */
enum exit_status attach_options_parse(int argc, char **argv, struct attach_options *options,
				      bool *ret_done);
