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
	pid_t pid;	  /* 0: path is used */
	const char *path; /* borrowed; a file; NULL: pid is used */
	enum jit_task task;
	bool json;
	remote_addr dump_addr;
	const char *output_path; /* borrowed; where JIT_TASK_DUMP writes */
};

/* The rows of the options. */
enum { JIT_OPTIONS_NR_GROUPS = 1 };
extern const struct option_group jit_options_groups[JIT_OPTIONS_NR_GROUPS];

/*
 * Parse the arguments. Returns EXIT_OK, or another status after printing an error. *ret_done is
 * true if --help was printed and nothing is left to do.
 */
enum exit_status jit_options_parse(int argc, char **argv, struct jit_options *ret_options,
				   bool *ret_done);
