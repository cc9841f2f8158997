/* SPDX-License-Identifier: MIT */
/* The dump of one process, with everything that its stacks refer to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/dump/dump_native.h"
#include "cmd/dump/waits.h"
#include "cmd/target.h"
#include "output/dump/dump.h"
#include "output/source/source_lines.h"
#include "sampler/sampler.h"

struct process_dump_options {
	struct target_wait wait;
	bool native; /* with C frames */
	bool kernel_frames;
	bool source;
	bool verbose;		  /* with native threads, and how the interpreter was found */
	bool full_command;	  /* name the program by all its arguments */
	bool is_ungrouped;	  /* print each thread by itself */
	bool shows_task_tree;	  /* print the asyncio tasks only, as a tree */
	bool is_of_tree;	  /* print little of each: there may be many processes */
	uint32_t value_max_chars; /* 0: no variables */
};

/* It must not be moved: its parts refer to each other. All zero is not open: see _done(). */
struct process_dump {
	struct target target;
	struct sampler *sampler; /* owns the functions of the frames */
	struct source_lines sources;
	struct dump_native native;
	struct waits waits;
	struct dump *dump;
};

/*
 * Open process pid and collect its stacks and tasks. process_dump_done() must follow in any case.
 * Returns EXIT_OK, or another exit status with a message; target.search_err then says why it has
 * no interpreter, if it has none.
 */
enum exit_status process_dump_take(struct process_dump *taken, pid_t pid,
				   const struct process_dump_options *options,
				   struct message *reterr);
void process_dump_done(struct process_dump *taken);

/* What its text and JSON say of it; borrowed from taken. */
struct run_info process_dump_info(const struct process_dump *taken);
