/* SPDX-License-Identifier: MIT */
/* pysample dump: prints the stacks of every thread, once. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/dump/dump_native.h"
#include "cmd/dump/tasks.h"
#include "cmd/output_file.h"
#include "cmd/print.h"
#include "cmd/process_choice.h"
#include "cmd/shared_options.h"
#include "cmd/target.h"
#include "output/dump/dump.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/sampler.h"

struct dump_options {
	pid_t pid;
	struct target_wait wait;
	bool json;
	bool native;
	bool kernel_frames;
	bool source;
	bool verbose;
	bool full_command;
	const char *process_name; /* --name: a pattern; NULL: none */
	uint32_t value_max_chars; /* 0: no variables */
};

static const struct option_spec stack_rows[] = {
	{"native", NULL,
	 "merge C frames with Python frames: for waiting threads, and\n"
	 "for running ones if the kernel permits copying their stacks,\n"
	 "which takes a tenth of a second",
	 .letter = 'n', .action = OPTION_SETS, .at = offsetof(struct dump_options, native)},
	{"kernel", NULL,
	 "with -n, add kernel functions for threads inside the kernel\n"
	 "(waiting threads need CAP_SYS_ADMIN; running ones: as attach)",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, kernel_frames)},
	{"source", NULL,
	 "show each source line, with its current expression marked\n"
	 "(3.11+), unless the file changed after the process started",
	 .action = OPTION_SETS, .at = offsetof(struct dump_options, source)},
	{"json", NULL, "one JSON object, frames outermost first", .action = OPTION_SETS,
	 .at = offsetof(struct dump_options, json)},
};

static const struct option_spec verbose_row[] = {
	{"verbose", NULL,
	 "print how the interpreter was found and how it is read; also\n"
	 "list native threads, which Python does not know",
	 .letter = 'v', .action = OPTION_SETS, .at = offsetof(struct dump_options, verbose)},
};

static const struct option_group groups[] = {
	{"Options:", stack_rows, sizeof(stack_rows) / sizeof(*stack_rows), .at = 0},
	{NULL, value_options, 2, offsetof(struct dump_options, value_max_chars)},
	{NULL, process_name_option, 1, offsetof(struct dump_options, process_name)},
	{NULL, wait_option, 1, offsetof(struct dump_options, wait)},
	{NULL, full_command_option, 1, offsetof(struct dump_options, full_command)},
	{NULL, verbose_row, 1, .at = 0},
};

static enum exit_status write_dump(const struct dump_options *options, const struct target *target,
				   const struct dump *dump, struct message *reterr)
{
	const struct run_info info = {
		.target.command_line = target->command_line,
		.target.pid = options->pid,
		.python.version = target->version,
	};
	struct output_file output;
	int err = output_file_open(NULL, &output, reterr);

	if (!err)
		err = output_file_begin(&output, reterr);
	if (!err)
		err = output_file_finish(&output,
					 options->json
						 ? dump_write_json(dump, &info, output.stream)
						 : dump_write_text(dump, &info, output.stream),
					 reterr);
	return err ? EXIT_ERROR : EXIT_OK;
}

/*
 * Add what the kernel knows of the threads that the dump does not have. Threads that end
 * meanwhile are left out. Returns 0, or the errno of process_threads().
 */
static int add_native_threads(const struct target *target, struct dump *dump)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads;
	int err = process_threads(&target->process, &threads, &nr_threads);

	dump_include_native(dump);
	for (size_t i = 0; !err && i < nr_threads; i++) {
		struct native_thread native = {.tid = threads[i].tid};
		struct thread_wait wait;

		if (thread_wait_read(&target->process, native.tid, &wait))
			continue;
		native.state = wait.state;
		memcpy(native.name, threads[i].name, sizeof(native.name));
		memcpy(native.wchan, wait.wchan, sizeof(native.wchan));
		err = dump_add_native(dump, &native);
	}
	return err;
}

/*
 * Returns when the process was started (CLOCK_REALTIME), rounded up because the kernel reports
 * hundredths of a second; 1, long ago, if that is unknown.
 */
static uint64_t start_of(const struct process *process)
{
	const uint64_t age_ns = process_age_ns(process);
	const uint64_t now_ns = clock_ns(CLOCK_REALTIME);

	return age_ns < now_ns ? now_ns - age_ns + NS_PER_S / 100 : 1;
}

/* Collect the stacks, then the tasks. Returns errors of sampler_dump(). */
static int collect_stacks(struct sampler *sampler, struct target *target, struct dump *dump,
			  struct sample_sink *sink)
{
	int err = sampler_dump(sampler, sink);

	return err ? err : tasks_dump(sampler, &target->maps, sink, dump);
}

/* The same with C frames, whose functions native keeps. */
static int collect_native_stacks(struct sampler *sampler, struct target *target, struct dump *dump,
				 bool kernel_frames, struct dump_native *native)
{
	int err = dump_native_init(native, target, sampler, kernel_frames, dump_sink(dump));

	if (!err && native->why_no_kernel.text[0])
		print_note("no kernel frames: %s", native->why_no_kernel.text);
	if (!err)
		err = collect_stacks(sampler, target, dump, &native->sink);
	if (!err && native->nr_unknown)
		print_note("no C frames for %zu of %zu threads: %s", native->nr_unknown,
			   native->nr_threads,
			   native->why_no_native.text[0]
				   ? native->why_no_native.text
				   : "they moved, but did not run long enough to be copied; "
				     "another dump may succeed");
	return err;
}

static enum exit_status dump_target(const struct dump_options *options, struct target *target,
				    struct message *reterr)
{
	const struct sampler_extras extras = {
		.details = true,
		.value_max_chars = options->value_max_chars,
	};
	struct sampler *sampler = NULL;
	struct source_lines sources = {.newer = "the process"};
	struct dump_native native = {.process = NULL};
	struct dump *dump = dump_create();
	enum exit_status status;
	int err = -ENOMEM;

	if (dump)
		err = target_create_sampler(target, &sampler);
	if (dump && extras.value_max_chars)
		dump_include_variables(dump);
	if (!err) {
		sampler_set_extras(sampler, &extras);
		err = options->native ? collect_native_stacks(sampler, target, dump,
							      options->kernel_frames, &native)
				      : collect_stacks(sampler, target, dump, dump_sink(dump));
	}
	if (!err && options->source) {
		sources.until_ns = start_of(&target->process);
		dump_include_sources(dump, &sources);
	}
	if (!err && options->verbose)
		err = add_native_threads(target, dump);
	status = err ? target_explain(target, err, reterr)
		     : write_dump(options, target, dump, reterr);
	dump_destroy(dump);
	source_lines_done(&sources);
	dump_native_done(&native);
	sampler_destroy(sampler);
	return status;
}

static enum exit_status run(int argc, char **argv)
{
	struct dump_options options = {.wait = TARGET_WAIT_DEFAULT};
	struct message message = {0};
	struct target target;
	enum exit_status status;
	bool is_done;
	int first;

	status = options_parse(&dump_command, argc, argv, &options, &first, &is_done);
	if (status != EXIT_OK || is_done)
		return status;
	if (options.kernel_frames && !options.native) {
		print_error("--kernel requires -n");
		return EXIT_USAGE;
	}
	status = process_choose(argc, argv, first, options.process_name, &options.pid);
	if (status != EXIT_OK)
		return status;
	status = target_open(options.pid, &options.wait, &target, &message);
	if (status == EXIT_OK && options.full_command)
		target_show_arguments(&target);
	if (status == EXIT_OK && options.verbose)
		target_print_found(&target);
	if (status == EXIT_OK)
		target_print_untested(&target);
	if (status == EXIT_OK)
		status = dump_target(&options, &target, &message);
	if (status != EXIT_OK)
		print_error("%s", message.text);
	target_close(&target);
	return status;
}

const struct command dump_command = {
	.name = "dump",
	.summary = "print the stacks of every thread, once",
	.usage = "[OPTION]… [PID]",
	.about =
		"Prints the stack of every Python thread of a process, most recent call last, and\n"
		"from 3.14 on its asyncio tasks: what each awaits, and which tasks await it. The\n"
		"process is not stopped, and a stopped process is not resumed.\n",
	.groups = groups,
	.nr_groups = sizeof(groups) / sizeof(*groups),
	.operands = OPERAND_PID,
	.epilogue =
		"Exit status: 0 printed, 1 error, 2 usage, 3 not a Python process or an unknown\n"
		"version, 4 permission denied, 5 the process ended.\n"
		"\n"
		"Examples:\n"
		"  pysample dump 1234\n"
		"  pysample dump --json 1234 | jq '.threads[] | select(.holds_gil)'\n",
	.run = run,
};
