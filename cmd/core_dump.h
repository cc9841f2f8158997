/* SPDX-License-Identifier: MIT */
/* Everything that is told of one core file: its stacks, and what else there is to say. */
#pragma once

#include "cmd/core_target.h"
#include "cmd/core_threads.h"
#include "output/dump.h"
#include "output/post_mortem.h"
#include "output/problems.h"
#include "output/run_info.h"
#include "output/source_lines.h"
#include "sampler/sampler.h"

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
};

/*
 * Take the stacks of all threads; also the variables of frames, each value of so many characters
 * at most, if that is not 0. EXIT_OK, or the status to exit with and a sentence;
 * core_dump_done() is to be called either way, before the target is closed.
 */
enum exit_status core_dump_take(struct core_target *target, uint32_t value_max_chars,
				struct core_dump *ret_dump, struct message *reterr);
void core_dump_done(struct core_dump *dump);
