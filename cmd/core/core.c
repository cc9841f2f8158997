/* SPDX-License-Identifier: MIT */
/* pysample core: prints the stacks in core files. */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/core/core_options.h"
#include "cmd/core/core_profile.h"
#include "cmd/core/core_report.h"
#include "cmd/core/core_target.h"
#include "cmd/output_file.h"
#include "cmd/print.h"
#include "cmd/signals.h"
#include "cmd/target.h"
#include "output/dump/stack_groups.h"
#include "output/text/text.h"

/* How many of the cores that died at the same place are named. */
enum { MAX_NAMES_OF_GROUP = 10 };

static void print_found(const struct core_target *target)
{
	const struct runtime *runtime = &target->runtime;

	print_note("%s: _PyRuntime at 0x%llx by %s in %s", target->path,
		   (unsigned long long)runtime->addr, runtime->found_by, runtime->image_path);
}

static enum exit_status write_report(const struct core_options *options,
				     const struct core_report *report, struct message *reterr)
{
	struct output_file output;
	int err = output_file_open(NULL, &output, reterr);

	if (!err)
		err = output_file_begin(&output, reterr);
	if (!err)
		err = output_file_finish(
			&output,
			options->json ? dump_write_json(report->dump, &report->info, output.stream)
				      : dump_write_text(report->dump, &report->info, output.stream),
			reterr);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* Add a core to the group of those that died at the same place. */
static enum exit_status add_to_groups(struct stack_groups *groups, const struct core_target *target,
				      const struct core_report *report, struct message *reterr)
{
	struct text stack = {0};
	int err;

	dump_append_fatal(report->dump, &stack);
	err = stack.error ? stack.error
			  : stack_groups_add(groups, text_string(&stack), target->path);
	text_done(&stack);
	if (err)
		message_set(reterr, "out of memory");
	return err ? EXIT_ERROR : EXIT_OK;
}

/*
 * Write one core, or add it to groups. Returns EXIT_OK, or another status after printing an
 * error.
 */
static enum exit_status report_core(const struct core_options *options, const char *path,
				    struct stack_groups *groups)
{
	struct message message = {0};
	struct core_target target;
	struct core_report report = {0};
	enum exit_status status =
		core_target_open(path, &options->places, options->full_command, &target, &message);

	if (status == EXIT_OK && options->verbose)
		print_found(&target);
	if (status == EXIT_OK)
		target_print_untested(&target.runtime.build, target.version);
	if (status == EXIT_OK)
		status = core_report_make(&target, &options->report, &report, &message);
	if (status == EXIT_OK)
		status = groups ? add_to_groups(groups, &target, &report, &message)
				: write_report(options, &report, &message);
	if (status != EXIT_OK)
		print_error("%s", message.text);
	core_report_done(&report);
	core_target_close(&target);
	return status;
}

/*
 * Write each core by itself, or all of them by where they died. Returns EXIT_OK if one could be
 * read.
 */
static enum exit_status report_cores(const struct core_options *options)
{
	const bool is_grouped = options->nr_paths > 1 && !options->json;
	struct stack_groups groups = {0};
	enum exit_status status = EXIT_ERROR;
	size_t nr_reported = 0;

	for (size_t i = 0; i < options->nr_paths; i++) {
		enum exit_status core_status =
			report_core(options, options->paths[i], is_grouped ? &groups : NULL);

		if (!nr_reported)
			status = core_status;
		nr_reported += core_status == EXIT_OK;
	}
	if (nr_reported && is_grouped) {
		(void)stack_groups_write(&groups, MAX_NAMES_OF_GROUP, stdout);
		status = print_finish(EXIT_OK);
	}
	stack_groups_done(&groups);
	return status;
}

static enum exit_status write_profile(struct core_options *options)
{
	const struct core_profile cores = {
		.paths = options->paths,
		.nr_paths = options->nr_paths,
		.places = options->places,
		.full_command = options->full_command,
		.crashed_only = options->crashed_only,
		.native = options->report.native,
		.profile = options->profile,
		.layout = options->layout,
	};
	enum exit_status status = outputs_open_or_print(&options->outputs);

	return status == EXIT_OK ? core_profile_write(&cores, &options->outputs) : status;
}

static enum exit_status run(int argc, char **argv)
{
	struct core_options options;
	bool done;
	enum exit_status status = core_options_parse(argc, argv, &options, &done);

	if (status == EXIT_OK && !done) {
		signals_make_writes_fail();
		status = options.wants_profile ? write_profile(&options) : report_cores(&options);
	}
	core_options_done(&options);
	return status;
}

const struct command core_command = {
	.name = "core",
	.summary = "print why a process died, and its stacks, from a core file",
	.usage = "[OPTION]… CORE… [EXE]",
	.about =
		"Prints why a process died and the stack of each of its Python threads, most\n"
		"recent call last, from a core file that the kernel or gdb's gcore wrote, also\n"
		"compressed (.zst, .gz, .xz, .lz4); - is stdin. From 3.8 on it also prints asyncio\n"
		"tasks: what each awaits, and which tasks await it. The thread that crashed comes\n"
		"first. Nothing is executed. EXE names the program if it has moved; it need not be\n"
		"present.\n"
		"\n"
		"For several cores it prints where they died: each distinct stack once, the most\n"
		"frequent first.\n",
	.groups = core_options_groups,
	.nr_groups = CORE_OPTIONS_NR_GROUPS,
	.lists_formats = true,
	.operands = OPERAND_FILE,
	.epilogue =
		"Exit status: 0 printed, 1 error, 2 usage, 3 no Python in the core or an unknown\n"
		"version, 4 permission denied, 5 no thread crashed (--crashed). For several cores 0\n"
		"if one could be read; errors in the others are printed.\n"
		"\n"
		"Examples:\n"
		"  pysample core core.1234\n"
		"  pysample core -n core.1234\n"
		"  pysample core --json core.1234 | jq '.threads[] | select(.crashed)'\n"
		"  coredumpctl dump 1234 | pysample core -\n"
		"  pysample core /var/lib/systemd/coredump/core.shop.*        where do they die?\n"
		"  pysample core --crashed -n /var/lib/systemd/coredump/* -o crashes.html\n",
	.run = run,
};
