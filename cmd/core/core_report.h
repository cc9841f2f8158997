/* SPDX-License-Identifier: MIT */
/* Everything that is reported of one core file: its stacks and what else is known. */
#pragma once

#include "cmd/core/core_modules.h"
#include "cmd/core/core_native.h"
#include "cmd/core/core_target.h"
#include "cmd/core/core_threads.h"
#include "output/dump/dump.h"
#include "output/dump/post_mortem.h"
#include "output/dump/problems.h"
#include "output/run/run_info.h"
#include "output/source/source_lines.h"
#include "sampler/sampler.h"

struct core_report_options {
	uint32_t value_max_chars; /* of a variable; 0: no variables */
	enum core_native_threads native;
	bool modules;	      /* list them */
	bool shows_task_tree; /* print the asyncio tasks only, as a tree */
};

/* What it points to is owned or borrowed from the target. It must not be moved. */
struct core_report {
	struct dump *dump;
	struct run_info info;
	struct post_mortem post_mortem; /* used by dump */
	struct problems problems;
	struct source_lines sources;

	/* Private. */
	struct sampler *sampler; /* owns the functions */
	struct core_threads threads;
	struct core_native native;
	struct core_modules modules;
};

/*
 * Collect the stacks of all threads, with what the options ask for. Returns EXIT_OK, or another
 * exit status with a message. core_report_done() must follow in any case, before the target is
 * closed.
 */
enum exit_status core_report_make(struct core_target *target,
				  const struct core_report_options *options,
				  struct core_report *ret_report, struct message *reterr);
void core_report_done(struct core_report *report);
