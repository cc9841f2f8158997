/* SPDX-License-Identifier: MIT */
/* The options of pysample jit. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/options.h"
#include "procmem/memory.h"

enum jit_task {
	JIT_TASK_LIST,
	JIT_TASK_WATCH,
	JIT_TASK_VERIFY,
	JIT_TASK_DUMP,
};

struct jit_options {
	pid_t pid;	  /* 0: a file */
	const char *path; /* borrowed; NULL: a process */
	enum jit_task task;
	bool json;
	remote_addr dump_addr;
	const char *output_path; /* of the dump; borrowed */
};

/* Their rows. */
enum { JIT_OPTIONS_NR_GROUPS = 1 };
extern const struct option_group jit_options_groups[JIT_OPTIONS_NR_GROUPS];

/* EXIT_OK, or another one after an error was printed; *ret_done if --help was all to be done. */
enum exit_status jit_options_parse(int argc, char **argv, struct jit_options *ret_options,
				   bool *ret_done);
