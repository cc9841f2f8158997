/* SPDX-License-Identifier: MIT */
/*
 * A command's options as one table, from which they are parsed, printed by --help, completed by
 * shells and compared with the manual page. Commands that share options share rows
 * (shared_options.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cmd/command.h"

/* What an option does. */
enum option_action {
	OPTION_CALLS,  /* calls .apply() */
	OPTION_SETS,   /* sets the bool at .at */
	OPTION_CLEARS, /* clears the bool at .at */
	OPTION_STORES, /* stores its value, borrowed, in the const char * at .at */
};

struct option_spec {
	const char *name;
	/* The value's name in --help; NULL: none; "[…]": optional, after the long name only. */
	const char *argument;
	const char *help; /* lines of at most 63 characters, printed as they are */
	size_t at;	  /* offset in bytes into what the group applies to */
	/* value is NULL if there is none. Returns false after printing an error. */
	bool (*apply)(void *options, const char *value);
	const char *words; /* the allowed values, separated by spaces; NULL: any */
	enum option_action action;
	char letter; /* short option; 0: none */
};

/* Options listed together. A group without a title continues the previous one. */
struct option_group {
	const char *title;
	const struct option_spec *specs;
	size_t nr_specs;
	size_t at; /* offset in bytes, in the command's options, of what they apply to */
};

/*
 * Parse the options of a command into options. Prints --help, which every command has. *ret_first
 * is the index of the first operand; *ret_done is true if --help was printed and nothing is left
 * to do. Returns EXIT_OK, or another status after printing an error.
 */
enum exit_status options_parse(const struct command *command, int argc, char **argv, void *options,
			       int *ret_first, bool *ret_done);

/* --help, which options_parse() adds to the options of every command. */
extern const struct option_spec help_option;

/*
 * Parse the process id that must be the only argument left, argv[first]. Returns false after
 * printing an error if it is missing, malformed or not the only one.
 */
bool parse_only_pid(int argc, char **argv, int first, pid_t *ret_pid);
