/* SPDX-License-Identifier: MIT */
#include "cmd/jit/jit_options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/option_values.h"
#include "cmd/print.h"

/* Parse a hexadecimal address, with or without "0x". Returns false after printing an error. */
static bool parse_addr(const char *text, remote_addr *ret_addr)
{
	char *end;

	errno = 0;
	*ret_addr = strtoull(text, &end, 16);
	if (isxdigit((unsigned char)*text) && !*end && !errno)
		return true;
	print_error("--dump requires a hexadecimal address, not '%s'", text);
	return false;
}

/* Set the only task. Returns false after printing an error. */
static bool set_task(struct jit_options *options, enum jit_task task)
{
	if (options->task != JIT_TASK_LIST && options->task != task) {
		print_error("only one of --watch, --verify and --dump can be given");
		return false;
	}
	options->task = task;
	return true;
}

static bool apply_watch(void *options, const char *value)
{
	(void)value;
	return set_task(options, JIT_TASK_WATCH);
}

static bool apply_verify(void *options, const char *value)
{
	(void)value;
	return set_task(options, JIT_TASK_VERIFY);
}

static bool apply_dump(void *options, const char *value)
{
	return set_task(options, JIT_TASK_DUMP) &&
	       parse_addr(value, &((struct jit_options *)options)->dump_addr);
}

static const struct option_spec rows[] = {
	{"watch", NULL,
	 "print each function as it appears, until the process ends or\n"
	 "Ctrl-C",
	 .apply = apply_watch},
	{"json", NULL,
	 "print one JSON object; with --watch one for each function, one\n"
	 "per line",
	 .action = OPTION_SETS, .at = offsetof(struct jit_options, json)},
	{"verify", NULL,
	 "check the jitdumps: report errors with their offsets, and the\n"
	 "number of records of each kind",
	 .apply = apply_verify},
	{"dump", "ADDR",
	 "write the function at ADDR to the file of -o as an ELF\n"
	 "object that objdump -dl, readelf and gdb read: its code,\n"
	 "symbol and, if known, lines and unwind information",
	 .apply = apply_dump},
	{"output", "FILE", "output file of --dump", .letter = 'o', .action = OPTION_STORES,
	 .at = offsetof(struct jit_options, output_path)},
};

const struct option_group jit_options_groups[JIT_OPTIONS_NR_GROUPS] = {
	{"Options:", rows, sizeof(rows) / sizeof(*rows), .at = 0},
};

/* Check that the options go together. Returns false after printing an error. */
static bool check_options(const struct jit_options *options)
{
	const bool is_dump = options->task == JIT_TASK_DUMP;

	if (is_dump && !options->output_path)
		print_error("--dump requires -o FILE");
	else if (!is_dump && options->output_path)
		print_error("-o requires --dump; lists go to stdout");
	else if (options->json && is_dump)
		print_error("--dump writes an ELF object, not JSON");
	else
		return true;
	return false;
}

/*
 * Parse the process id or file that must be the only argument left. Returns false after printing
 * an error.
 */
static bool parse_target(int argc, char **argv, int first, struct jit_options *options)
{
	if (argc - first != 1) {
		print_error(argc == first ? "no process id or file given"
					  : "more than one process id or file given");
		return false;
	}
	if (!parse_pid(argv[first], &options->pid))
		options->path = argv[first];
	return true;
}

enum exit_status jit_options_parse(int argc, char **argv, struct jit_options *ret_options,
				   bool *ret_done)
{
	enum exit_status status;
	int first;

	*ret_options = (struct jit_options){.task = JIT_TASK_LIST};
	status = options_parse(&jit_command, argc, argv, ret_options, &first, ret_done);
	if (status != EXIT_OK || *ret_done)
		return status;
	return check_options(ret_options) && parse_target(argc, argv, first, ret_options)
		       ? EXIT_OK
		       : EXIT_USAGE;
}
