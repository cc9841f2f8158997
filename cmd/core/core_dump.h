/* SPDX-License-Identifier: MIT */
/* Everything that is told of one core file: its stacks, and what else there is to say. */
#pragma once

#include "cmd/core/core_modules.h"
#include "cmd/core/core_native.h"
#include "cmd/core/core_target.h"
#include "cmd/core/core_threads.h"
#include "output/dump/dump.h"
#include "output/dump/post_mortem.h"
#include "output/dump/source_lines.h"
#include "output/run/problems.h"
#include "output/run/run_info.h"
#include "sampler/sampler.h"

struct core_dump_options {
	uint32_t value_max_chars; /* of variables; 0: none are wanted */
	enum core_native_threads native;
	bool modules; /* a list of them */
};

/* What it points to is owned, or borrowed from the target; it must not be moved. */
struct core_dump {
	struct dump *dump;
	struct run_info info;
	struct post_mortem post_mortem; /* the dump's */
	struct problems problems;
	struct source_lines sources;

	/* Private. */
	struct sampler *sampler; /* has the functions */
	struct core_threads threads;
	struct core_native native;
	struct core_modules modules;
};

/*
 * Take the stacks of all threads, with what the options ask for. EXIT_OK, or the status to exit
 * with and a sentence; core_dump_done() is to be called either way, before the target is closed.
 */
enum exit_status core_dump_take(struct core_target *target, const struct core_dump_options *options,
				struct core_dump *ret_dump, struct message *reterr);
void core_dump_done(struct core_dump *dump);
