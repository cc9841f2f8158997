/* SPDX-License-Identifier: MIT */
/* pysample ls: lists the Python processes that one may look at. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/ls/process_table.h"
#include "cmd/ls/python_processes.h"
#include "cmd/print.h"
#include "cmd/shared_options.h"

struct ls_options {
	bool json;
	bool all;
	bool full_command;
};

static const struct option_spec rows[] = {
	{"json", NULL, "one JSON object", .action = OPTION_SETS,
	 .at = offsetof(struct ls_options, json)},
	{"all", NULL,
	 "search every process, also where neither the program nor a\n"
	 "mapped file is called python: programs that have CPython\n"
	 "linked into them",
	 .letter = 'a', .action = OPTION_SETS, .at = offsetof(struct ls_options, all)},
};

static const struct option_group groups[] = {
	{"Options:", rows, sizeof(rows) / sizeof(*rows), .at = 0},
	{NULL, full_command_option, 1, offsetof(struct ls_options, full_command)},
};

/* Print how to see more, if there is more. */
static void print_hidden(const struct python_processes *processes)
{
	uint32_t nr_forbidden = 0;

	for (uint32_t i = 0; i < processes->nr; i++)
		nr_forbidden += processes->rows[i].access == PYTHON_FORBIDDEN;
	if (nr_forbidden)
		print_note("%u process%s marked ? may not be read: pysample doctor PID says why",
			   nr_forbidden, nr_forbidden == 1 ? "" : "es");
	if (geteuid() != 0 && processes->nr_hidden)
		print_note("%u process%s could not be looked at; root sees all",
			   processes->nr_hidden, processes->nr_hidden == 1 ? "" : "es");
}

static enum exit_status print_list(const struct ls_options *options,
				   const struct python_processes *processes)
{
	struct text text = {0};

	if (options->json) {
		(void)process_table_write_json(processes, stdout);
		return print_finish(EXIT_OK);
	}
	if (processes->nr) {
		process_table_format(processes, print_columns(STDOUT_FILENO), false, &text);
		(void)text_write(&text, stdout);
	} else {
		print_note("no Python process was found%s",
			   options->all ? ""
					: "; --all searches programs without python in "
					  "their files' names, too");
	}
	text_done(&text);
	print_hidden(processes);
	return print_finish(EXIT_OK);
}

static enum exit_status run(int argc, char **argv)
{
	struct ls_options options = {0};
	struct python_processes processes = {0};
	enum exit_status status;
	bool is_done;
	int err, first;

	status = options_parse(&ls_command, argc, argv, &options, &first, &is_done);
	if (status != EXIT_OK || is_done)
		return status;
	if (first < argc) {
		print_error("unexpected argument '%s'", argv[first]);
		return EXIT_USAGE;
	}
	const struct python_search search = {.looks_everywhere = options.all,
					     .full_command = options.full_command,
					     .measures_cpu = true};

	err = python_processes_find(&search, &processes);
	if (err) {
		print_error("cannot list the processes: %s", strerror(-err));
		return EXIT_ERROR;
	}
	status = print_list(&options, &processes);
	python_processes_done(&processes);
	return status;
}

const struct command ls_command = {
	.name = "ls",
	.summary = "list the Python processes that one may look at",
	.usage = "[OPTION]…",
	.about =
		"Lists the processes that run CPython: their ids, versions, numbers of threads, CPU\n"
		"use (in percent of one CPU, over a tenth of a second), containers, and names. ?\n"
		"marks one that may not be read, (pid ns) one in another PID namespace.\n",
	.groups = groups,
	.nr_groups = sizeof(groups) / sizeof(*groups),
	.operands = OPERAND_NONE,
	.epilogue = "Exit status: 0 listed, 1 error, 2 usage.\n"
		    "\n"
		    "Examples:\n"
		    "  pysample ls\n"
		    "  pysample ls --json | jq '.processes[] | select(.cpu_percent > 50) | .pid'\n",
	.run = run,
};
