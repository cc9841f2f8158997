/* SPDX-License-Identifier: MIT */
#include "cmd/options.h"

#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/option_values.h"
#include "cmd/outputs.h"
#include "cmd/print.h"

enum { HELP_COLUMN = 25 };

/* More than the few dozen options of any command. */
enum { MAX_OPTIONS = 64 };

const struct option_spec help_option = {"help", NULL, "print this text", .letter = 'h'};

/* The arguments of getopt_long(3), and what each of its results means. */
struct parser {
	struct option long_options[MAX_OPTIONS + 1];
	char letters[3 * MAX_OPTIONS + 3];
	const struct option_spec *specs[MAX_OPTIONS];
	void *targets[MAX_OPTIONS]; /* the structs they apply to */
	int nr;
};

/* Results of long options; the result of a short option is its letter. */
enum { FIRST_RESULT = UCHAR_MAX + 1 };

static int argument_of(const struct option_spec *spec)
{
	return !spec->argument		  ? no_argument
	       : spec->argument[0] == '[' ? optional_argument
					  : required_argument;
}

static void add(struct parser *parser, const struct option_spec *spec, void *target)
{
	const int argument = argument_of(spec);
	char *letters = parser->letters + strlen(parser->letters);

	assert(parser->nr < MAX_OPTIONS);
	if (spec->letter) {
		*letters++ = spec->letter;
		/* Only the long name takes an optional value: letters can be combined. */
		if (argument == required_argument)
			*letters++ = ':';
	}
	parser->long_options[parser->nr] =
		(struct option){spec->name, argument, NULL, FIRST_RESULT + parser->nr};
	parser->specs[parser->nr] = spec;
	parser->targets[parser->nr++] = target;
}

static void init(struct parser *parser, const struct command *command, void *options)
{
	*parser = (struct parser){0};
	/* The colon stops getopt_long() from printing; the plus stops it at the first operand. */
	(void)snprintf(parser->letters, sizeof(parser->letters), "%s",
		       command->options_first ? "+:" : ":");
	for (size_t i = 0; i < command->nr_groups; i++)
		for (size_t k = 0; k < command->groups[i].nr_specs; k++)
			add(parser, &command->groups[i].specs[k],
			    (char *)options + command->groups[i].at);
	add(parser, &help_option, NULL);
}

/* Returns the index of the option that getopt_long() found, or -1 if it found none. */
static int find(const struct parser *parser, int result)
{
	if (result >= FIRST_RESULT)
		return result - FIRST_RESULT;
	for (int i = 0; i < parser->nr; i++)
		if (parser->specs[i]->letter == result)
			return i;
	return -1;
}

static bool apply(const struct option_spec *spec, void *target, const char *value)
{
	void *place = (char *)target + spec->at;

	switch (spec->action) {
	case OPTION_CALLS:
		return spec->apply(target, value);
	case OPTION_SETS:
	case OPTION_CLEARS:
		*(bool *)place = spec->action == OPTION_SETS;
		return true;
	case OPTION_STORES:
		*(const char **)place = value;
		return true;
	}
	return false;
}

/* Print why getopt_long() returned result, '?' or ':'. */
static void print_error_of(const struct parser *parser, int result, char **argv)
{
	const char *argument = argv[optind - 1];
	const char *command = argv[0];

	/* optopt is 0 for an unknown long option, otherwise the result of the option meant. */
	if (result == ':')
		print_error("option %s requires a value; see 'pysample %s --help'", argument,
			    command);
	else if (!optopt)
		print_error("unknown or ambiguous option %s; 'pysample %s "
			    "--help' lists them",
			    argument, command);
	else if (find(parser, optopt) >= 0)
		print_error("option %s takes no value; see 'pysample %s --help'", argument,
			    command);
	else
		print_error("unknown option -%c; 'pysample %s --help' lists them", optopt, command);
}

static void print_option(const struct option_spec *spec)
{
	const char *help = spec->help;
	char head[64];
	int length = snprintf(head, sizeof(head), "  %c%c%c --%s%s%s", spec->letter ? '-' : ' ',
			      spec->letter ? spec->letter : ' ', spec->letter ? ',' : ' ',
			      spec->name, !spec->argument || spec->argument[0] == '[' ? "" : " ",
			      spec->argument ? spec->argument : "");
	(void)printf("%s", head);
	if (length > HELP_COLUMN - 2) {
		(void)putchar('\n');
		length = 0;
	}
	for (;;) {
		const size_t nr = strcspn(help, "\n");

		(void)printf("%*s%.*s\n", HELP_COLUMN - length, "", (int)nr, help);
		if (!help[nr])
			return;
		help += nr + 1;
		length = 0;
	}
}

static void print_help(const struct command *command)
{
	(void)printf("usage: pysample %s %s\n\n%s", command->name, command->usage, command->about);
	for (size_t i = 0; i < command->nr_groups; i++) {
		const struct option_group *group = &command->groups[i];

		if (group->title)
			(void)printf("\n%s\n", group->title);
		for (size_t k = 0; k < group->nr_specs; k++)
			print_option(&group->specs[k]);
	}
	print_option(&help_option);
	if (command->lists_formats) {
		(void)fputs("\nFormats, and the file suffixes that select them:\n", stdout);
		outputs_print_formats(stdout);
	}
	(void)printf("\n%s", command->epilogue);
}

enum exit_status options_parse(const struct command *command, int argc, char **argv, void *options,
			       int *ret_first, bool *ret_done)
{
	struct parser parser;
	int result, i;

	*ret_done = false;
	init(&parser, command, options);
	while ((result = getopt_long(argc, argv, parser.letters, parser.long_options, NULL)) !=
	       -1) {
		if (result == '?' || result == ':') {
			print_error_of(&parser, result, argv);
			return EXIT_USAGE;
		}
		i = find(&parser, result);
		if (parser.specs[i] == &help_option) {
			*ret_done = true;
			print_help(command);
			return print_finish(EXIT_OK);
		}
		if (!apply(parser.specs[i], parser.targets[i], optarg))
			return EXIT_USAGE;
	}
	*ret_first = optind;
	return EXIT_OK;
}

bool parse_only_pid(int argc, char **argv, int first, pid_t *ret_pid)
{
	if (first >= argc) {
		print_error(
			"no process id given: pysample %s PID (pysample ls lists the processes)",
			argv[0]);
		return false;
	}
	if (first + 1 < argc) {
		print_error("unexpected argument '%s': give one process id", argv[first + 1]);
		return false;
	}
	if (!parse_pid(argv[first], ret_pid)) {
		print_error("'%s' is not a process id; pysample ls lists the processes",
			    argv[first]);
		return false;
	}
	return true;
}
