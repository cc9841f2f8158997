/* SPDX-License-Identifier: MIT */
/* A command: its name, help text, options and exit statuses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, as in the manual page. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PYTHON = 3,
	EXIT_PERMISSION = 4,
	EXIT_NO_SAMPLE = 5,
	EXIT_GREW = 10, /* report: the growth exceeds --fail-above */
	/* Of run only, with the meanings of env(1). */
	EXIT_RUN_FAILED = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NO_COMMAND = 127,
};

struct option_group;

/* The operands after the options, for shell completion. */
enum operand_kind {
	OPERAND_PID,
	OPERAND_FILE,
	OPERAND_PID_OR_FILE,
	OPERAND_COMMAND,
	OPERAND_SHELL,
	OPERAND_NONE
};

struct command {
	const char *name;
	const char *summary; /* one phrase for the list of commands */
	const char *usage;   /* the usage line after the name */
	const char *about;   /* paragraphs before the options */
	const struct option_group *groups;
	size_t nr_groups;
	const char *epilogue; /* after the options: exit statuses, examples */
	bool lists_formats;   /* the list of formats precedes the epilogue */
	bool options_first;   /* options must precede the first operand */
	enum operand_kind operands;
	/*
	 * Parse the options, run the command, print any error and flush stdout. argv[0] is the
	 * command's name. Returns the exit status; that of run is the status of the program it
	 * ran.
	 */
	enum exit_status (*run)(int argc, char **argv);
};

extern const struct command attach_command, completion_command, core_command, doctor_command,
	dump_command, jit_command, ls_command, report_command, run_command, top_command;

/* All commands, in the order of the list; NULL at the end. */
extern const struct command *const commands[];
