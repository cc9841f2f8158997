/* SPDX-License-Identifier: MIT */
/* What a command is: its name, its help, its options, and what it exits with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, as in the man page. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PYTHON = 3,
	EXIT_PERMISSION = 4,
	EXIT_NO_SAMPLE = 5,
	EXIT_GREW = 10, /* report: more than --fail-above allows */
	/* Of run only, as of env(1). */
	EXIT_RUN_FAILED = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NO_COMMAND = 127,
};

struct option_group;

/* What stands behind the options: shells complete it. */
enum operand_kind {
	OPERAND_PID,
	OPERAND_FILE,
	OPERAND_PID_OR_FILE,
	OPERAND_COMMAND,
	OPERAND_SHELL
};

struct command {
	const char *name;
	const char *summary; /* what it does, for the list of commands */
	const char *usage;   /* what follows its name */
	const char *about;   /* paragraphs in front of the options */
	const struct option_group *groups;
	size_t nr_groups;
	const char *epilogue; /* behind the options: exit statuses, examples */
	bool lists_formats;   /* in front of the epilogue */
	bool operands_end;    /* options stand in front of its operands only */
	enum operand_kind operands;
	/*
	 * argv[0] is the command's name. It parses its options, runs, prints what went wrong, has stdout
	 * flushed, and returns the status to exit with; run that of the program it ran.
	 */
	enum exit_status (*run)(int argc, char **argv);
};

extern const struct command attach_command, completion_command, core_command, doctor_command,
	dump_command, jit_command, report_command, run_command;

/* All of them, in the order of the list; NULL at its end. */
extern const struct command *const commands[];
