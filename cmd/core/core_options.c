/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_options.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/print.h"
#include "procmem/cleanup.h"
#include "procmem/sysroot.h"

#define SUMMARY_MAX_ROWS 30

/* Parse the value of --native. Returns false after printing an error. */
static bool apply_native(void *options, const char *threads)
{
	if (threads && strcmp(threads, "all") != 0) {
		print_error("unknown value '%s' of --native: use -n for Python threads, "
			    "--native=all for all threads",
			    threads);
		return false;
	}
	((struct core_options *)options)->report.native =
		threads ? CORE_NATIVE_ALL : CORE_NATIVE_PYTHON;
	return true;
}

static const struct option_spec report_rows[] = {
	{"json", NULL, "one JSON object for each core, frames outermost first",
	 .action = OPTION_SETS, .at = offsetof(struct core_options, json)},
	{"async", NULL,
	 "only the asyncio tasks, as a tree: below each task those that\n"
	 "it awaits, equal ones once",
	 .action = OPTION_SETS, .at = offsetof(struct core_options, report.shows_task_tree)},
	{"native", "[=all]",
	 "merge C frames with Python frames; default: Python frames only.\n"
	 "--native=all: also for threads that are unknown to Python",
	 .letter = 'n', .apply = apply_native},
	{"modules", NULL,
	 "list the programs and libraries: where they were loaded, their\n"
	 "build IDs, and which file was used, or why none",
	 .action = OPTION_SETS, .at = offsetof(struct core_options, report.modules)},
	{"sysroot", "DIR",
	 "root folder for the programs and libraries of the process;\n"
	 "files that do not match the core are not used",
	 .action = OPTION_STORES, .at = offsetof(struct core_options, places.sysroot)},
	{"lib-path", "DIR:DIR", "folders to search for them by name", .action = OPTION_STORES,
	 .at = offsetof(struct core_options, places.folders)},
	{"verbose", NULL, "print how the interpreter was found", .letter = 'v',
	 .action = OPTION_SETS, .at = offsetof(struct core_options, verbose)},
};

static const struct option_spec profile_rows[] = {
	{"crashed", NULL, "only the thread of each core that crashed", .action = OPTION_SETS,
	 .at = offsetof(struct core_options, crashed_only)},
};

const struct option_group core_options_groups[CORE_OPTIONS_NR_GROUPS] = {
	{"Stacks:", report_rows, sizeof(report_rows) / sizeof(*report_rows), .at = 0},
	{NULL, value_options, 2, offsetof(struct core_options, report.value_max_chars)},
	{NULL, full_command_option, 1, offsetof(struct core_options, full_command)},
	{"Profile of one or more cores, with each thread of each core as one sample:",
	 output_options, 2, offsetof(struct core_options, outputs)},
	{NULL, profile_rows, 1, .at = 0},
	{NULL, row_options, 3, offsetof(struct core_options, profile)},
	{NULL, plumbing_option, 1, offsetof(struct core_options, profile)},
	{NULL, layout_options, 2, offsetof(struct core_options, layout)},
};

/* Whether path is an ELF file that is a program or a library, not a core. */
static bool is_program(const char *path)
{
	/* A core may come through a FIFO, whose writer must not see it opened and closed. */
	cleanup_close int fd = sysroot_open_named(path);
	Elf64_Ehdr header;

	return fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

static bool shows_groups(const struct core_options *options)
{
	return options->nr_paths > 1 && !options->json && !options->wants_profile;
}

/* Whether stdin would have to be read more than once. */
static bool reads_stdin_twice(const struct core_options *options)
{
	size_t nr = 0;

	for (size_t i = 0; i < options->nr_paths; i++)
		nr += strcmp(options->paths[i], "-") == 0;
	return nr > 1 || (nr && options->outputs.nr > 1);
}

/* Check that the options go together. Returns false after printing an error. */
static bool check(struct core_options *options)
{
	const char *error = NULL;

	options->wants_profile = options->outputs.nr || options->outputs.next;
	if (!options->nr_paths)
		error = "no core file given; 'pysample core --help' has examples";
	else if (options->wants_profile && options->json)
		error = "--json prints the threads of each core: use -f jsonl for a profile";
	else if (!options->wants_profile &&
		 (options->crashed_only || options->profile.by_thread || options->profile.by_line ||
		  options->profile.keep_plumbing))
		error = "--crashed, --threads, --lines and --plumbing require a profile: add -o or "
			"-f";
	else if (options->wants_profile && options->report.shows_task_tree)
		error = "--async prints the tasks of a core: leave out -o and -f";
	else if (options->profile.keep_plumbing && !options->report.native)
		error = "--plumbing requires -n";
	else if (shows_groups(options) &&
		 (options->report.value_max_chars || options->report.modules ||
		  options->report.shows_task_tree))
		error = "--locals, --modules and --async require a single core, or --json: of "
			"several cores only the place where they died is shown";
	else if (reads_stdin_twice(options))
		error = "stdin can be read only once: use - once, with one output";
	if (error)
		print_error("%s", error);
	return !error;
}

enum exit_status core_options_parse(int argc, char **argv, struct core_options *options,
				    bool *ret_done)
{
	enum exit_status status;
	int first;

	*ret_done = false;
	*options = (struct core_options){
		.paths = calloc((size_t)argc + 1, sizeof(*options->paths)),
		.profile = {.mode = PROFILE_COUNT},
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};
	if (!options->paths) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	status = options_parse(&core_command, argc, argv, options, &first, ret_done);
	if (status != EXIT_OK || *ret_done)
		return status;
	/* The program may follow the cores. */
	if (argc - first > 1 && is_program(argv[argc - 1]))
		options->places.executable = argv[--argc];
	for (int i = first; i < argc; i++)
		options->paths[options->nr_paths++] = argv[i];
	if (!check(options))
		return EXIT_USAGE;
	if (options->wants_profile &&
	    (!outputs_choose(&options->outputs) || !outputs_can_count(&options->outputs)))
		return EXIT_USAGE;
	return EXIT_OK;
}

void core_options_done(struct core_options *options)
{
	outputs_discard(&options->outputs);
	free(options->paths);
}
