/* SPDX-License-Identifier: MIT */
/*
 * The options of a command, written once: a table from which they are parsed, printed by --help,
 * completed by shells and compared with the manual page. Commands that share options share rows
 * (shared_options.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cmd/command.h"

/* What an option does to the options of its command. */
enum option_action {
	OPTION_CALLS,  /* .apply() */
	OPTION_SETS,   /* the bool at .at */
	OPTION_CLEARS, /* the same */
	OPTION_KEEPS,  /* its value, borrowed, in the const char * at .at */
};

struct option_spec {
	const char *name;
	const char *argument; /* its value as --help calls it; NULL: none; "[…]": may be left out */
	const char *help;     /* lines as they are printed, of at most 63 characters */
	size_t at;	      /* in bytes, in what the group applies to */
	/* False after an error was printed. value is NULL if there is none. */
	bool (*apply)(void *options, const char *value);
	const char *words; /* values that there are, separated by spaces; NULL: any */
	enum option_action action;
	char letter; /* 0: none */
};

/* Options that stand together. A group without a title continues the one before. */
struct option_group {
	const char *title;
	const struct option_spec *specs;
	size_t nr_specs;
	size_t at; /* what they apply to, in the options of the command, in bytes */
};

/*
 * Parse the options of a command into options. --help, which every command has, is printed.
 * *ret_first is the index of the first operand. EXIT_OK; or another status after an error was
 * printed; *ret_done: --help was all to be done.
 */
enum exit_status options_parse(const struct command *command, int argc, char **argv, void *options,
			       int *ret_first, bool *ret_done);

/* --help, which options_parse() adds to the options of every command. */
extern const struct option_spec help_option;

/*
 * The process id that must be the only argument left: argv[first]. False after an
 * error was printed, if it is none or not the only one.
 */
bool parse_only_pid(int argc, char **argv, int first, pid_t *ret_pid);
