/* SPDX-License-Identifier: MIT */
/* pysample dump: prints the stacks of every thread, once. */
#include <stddef.h>
#include <stdio.h>

#include "cmd/command.h"
#include "cmd/dump/process_dump.h"
#include "cmd/dump/watch.h"
#include "cmd/option_values.h"
#include "cmd/print.h"
#include "cmd/process_choice.h"
#include "cmd/shared_options.h"

struct dump_options {
	struct process_dump_options process;
	pid_t pid;
	const char *process_name; /* --name: a pattern; NULL: none */
	struct watch_options how;
};

static bool apply_watch(void *interval_ns, const char *value)
{
	if (parse_duration(value, interval_ns))
		return true;
	print_error("invalid interval '%s': use 5, 0.5, 500ms or 1m", value);
	return false;
}

static const struct option_spec tree_row[] = {
	{"subprocesses", NULL,
	 "also the processes that it has started, those that they have\n"
	 "started, and so on",
	 .letter = 's', .action = OPTION_SETS,
	 .at = offsetof(struct dump_options, how.subprocesses)},
};

static const struct option_spec watch_row[] = {
	{"watch", "S",
	 "dump again every S seconds, and print what changed: stacks\n"
	 "that are new, gone, or not changed, which is what hangs",
	 .apply = apply_watch},
};

static const struct option_spec stack_rows[] = {
	{"no-group", NULL, "print equal stacks of several threads again and again",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, process.is_ungrouped)},
	{"async", NULL,
	 "only the asyncio tasks, as a tree: below each task those that\n"
	 "it awaits, equal ones once",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, process.shows_task_tree)},
	{"native", NULL,
	 "merge C frames with Python frames: for waiting threads, and\n"
	 "for running ones if the kernel permits copying their stacks,\n"
	 "which takes a tenth of a second",
	 .letter = 'n', .action = OPTION_SETS, .at = offsetof(struct dump_options, process.native)},
	{"kernel", NULL,
	 "with -n, add kernel functions for threads inside the kernel\n"
	 "(waiting threads need CAP_SYS_ADMIN; running ones: as attach)",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, process.kernel_frames)},
	{"source", NULL,
	 "show each source line, with its current expression marked\n"
	 "(3.11+), unless the file changed after the process started",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, process.source)},
	{"json", NULL, "one JSON object, frames outermost first", .action = OPTION_SETS,
	 .at = offsetof(struct dump_options, how.json)},
};

static const struct option_spec verbose_row[] = {
	{"verbose", NULL,
	 "print how the interpreter was found and how it is read; also\n"
	 "list native threads, which Python does not know",
	 .letter = 'v', .action = OPTION_SETS,
	 .at = offsetof(struct dump_options, process.verbose)},
};

static const struct option_group groups[] = {
	{"Options:", tree_row, 1, .at = 0},
	{NULL, watch_row, 1, offsetof(struct dump_options, how.interval_ns)},
	{NULL, stack_rows, sizeof(stack_rows) / sizeof(*stack_rows), .at = 0},
	{NULL, value_options, 2, offsetof(struct dump_options, process.value_max_chars)},
	{NULL, process_name_option, 1, offsetof(struct dump_options, process_name)},
	{NULL, wait_option, 1, offsetof(struct dump_options, process.wait)},
	{NULL, full_command_option, 1, offsetof(struct dump_options, process.full_command)},
	{NULL, verbose_row, 1, .at = 0},
};

static enum exit_status run(int argc, char **argv)
{
	struct dump_options options = {.process.wait = TARGET_WAIT_DEFAULT};
	struct message message = {0};
	enum exit_status status;
	bool is_done;
	int first;

	status = options_parse(&dump_command, argc, argv, &options, &first, &is_done);
	if (status != EXIT_OK || is_done)
		return status;
	if (options.process.kernel_frames && !options.process.native) {
		print_error("--kernel requires -n");
		return EXIT_USAGE;
	}
	status = process_choose(argc, argv, first, options.process_name, &options.pid);
	if (status != EXIT_OK)
		return status;
	options.process.is_of_tree = options.how.subprocesses;
	status = options.how.interval_ns
			 ? watch(options.pid, &options.process, &options.how, &message)
			 : dump_once(options.pid, &options.process, &options.how, &message);
	if (status != EXIT_OK)
		print_error("%s", message.text);
	return status;
}

const struct command dump_command = {
	.name = "dump",
	.summary = "print the stacks of every thread, once",
	.usage = "[OPTION]… [PID]",
	.about =
		"Prints the stack of every Python thread of a process, most recent call last, and\n"
		"from 3.8 on its asyncio tasks: what each awaits, and which tasks await it. The\n"
		"process is not stopped, and a stopped process is not resumed. Equal stacks are\n"
		"printed once, with the threads that have them.\n",
	.groups = groups,
	.nr_groups = sizeof(groups) / sizeof(*groups),
	.operands = OPERAND_PID,
	.epilogue =
		"Exit status: 0 printed, 1 error, 2 usage, 3 not a Python process or an unknown\n"
		"version, 4 permission denied, 5 the process ended.\n"
		"\n"
		"Examples:\n"
		"  pysample dump 1234\n"
		"  pysample dump -s 1234                 where does everything hang?\n"
		"  pysample dump -s --watch 5 1234       what has not moved since?\n"
		"  pysample dump --json 1234 | jq '.threads[] | select(.holds_gil)'\n",
	.run = run,
};
