/* SPDX-License-Identifier: MIT */
/* pysample jit: lists the code that a process has generated while it runs. */
#include <stdio.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/jit/jit_dump.h"
#include "cmd/jit/jit_executors.h"
#include "cmd/jit/jit_list.h"
#include "cmd/jit/jit_options.h"
#include "cmd/jit/jit_target.h"
#include "cmd/jit/jit_verify.h"
#include "cmd/print.h"
#include "cmd/stop.h"

/* Interval of the looks of --watch: new functions appear soon, and a look costs a millisecond. */
#define WATCH_INTERVAL_NS 100000000

/* Sleep until the next look or a signal. */
static void wait_for_more(void)
{
	const struct timespec interval = {.tv_nsec = WATCH_INTERVAL_NS};

	(void)nanosleep(&interval, NULL);
}

/* Print new code until the process ends, we are asked to stop, or nobody reads the output. */
static enum exit_status watch(struct jit_target *target, bool as_json, struct message *reterr)
{
	uint32_t nr_printed = 0;
	bool is_final;

	do {
		/* Checked before the look, which then sees all that was written. */
		is_final = jit_target_has_ended(target) || *stop_flag();
		enum exit_status status = jit_target_refresh(target, is_final, reterr);

		if (status != EXIT_OK && (status != EXIT_NO_SAMPLE || !nr_printed))
			return status;
		nr_printed = jit_list_print_new(target, nr_printed, as_json);
		if (fflush(stdout) || ferror(stdout))
			return EXIT_OK; /* print_finish() reports it */
		if (!is_final)
			wait_for_more();
	} while (!is_final);
	return EXIT_OK;
}

/* Returns EXIT_NO_SAMPLE with a message if the target is a process without any source of code. */
static enum exit_status check_sources(const struct jit_target *target, struct message *reterr)
{
	uint32_t nr_files, nr_codes;

	(void)jit_sources_files(target->sources, &nr_files);
	(void)jit_map_codes(jit_sources_map(target->sources), &nr_codes);
	if (nr_files || nr_codes || !jit_target_is_process(target))
		return EXIT_OK;
	message_set(reterr,
		    "process %d tells of no code that it has made: it has no jitdump mapped, no "
		    "perf map and no list for debuggers or libunwind; python3 -X perf_jit writes a "
		    "jitdump, with CPython's own JIT switched off",
		    target->process.pid);
	return EXIT_NO_SAMPLE;
}

static enum exit_status do_task(const struct jit_options *options, struct jit_target *target,
				struct message *reterr)
{
	enum exit_status status;

	if (options->task == JIT_TASK_WATCH)
		return watch(target, options->json, reterr);
	status = jit_target_refresh(target, !jit_target_is_process(target), reterr);
	if (status == EXIT_OK && options->task == JIT_TASK_VERIFY)
		return jit_verify_print(target, options->json, reterr);
	if (status == EXIT_OK)
		status = jit_target_add_trampolines(target, reterr);
	if (status == EXIT_OK)
		status = jit_executors_add(target, reterr);
	if (status == EXIT_OK)
		status = check_sources(target, reterr);
	if (status != EXIT_OK)
		return status;
	return options->task == JIT_TASK_DUMP ? jit_dump_write(target, options, reterr)
					      : jit_list_print(target, options->json, reterr);
}

static enum exit_status run(int argc, char **argv)
{
	struct jit_options options;
	struct jit_target target;
	struct message message = {0};
	bool done;
	enum exit_status status = jit_options_parse(argc, argv, &options, &done);

	if (status != EXIT_OK || done)
		return status;
	stop_survive_writes();
	if (options.task == JIT_TASK_WATCH)
		stop_catch_signals();
	status = jit_target_open(&options, &target, &message);
	if (status == EXIT_OK)
		status = do_task(&options, &target, &message);
	if (message.text[0])
		print_error("%s", message.text);
	jit_target_close(&target);
	return print_finish(status);
}

const struct command jit_command = {
	.name = "jit",
	.summary = "list, follow, check and extract the code that a JIT has made",
	.usage = "[OPTION]… PID|FILE",
	.about =
		"Lists the code that a process has made while it runs, by address: of each function\n"
		"where it is, how long it is, since when, which source tells of it, and its name. The\n"
		"process need not be Python, and is not stopped. Sources are\n"
		"  jitdump   the files jit-PID.dump that it has mapped (python3 -X perf_jit, V8, the\n"
		"            JVM with its agent, LLVM); they also tell lines and how to unwind\n"
		"  gdb       the list for debuggers in its memory (CPython 3.15's JIT, numba, LLVM)\n"
		"  libunwind the list for libunwind in its memory: what calls _U_dyn_register\n"
		"  perf map  /tmp/perf-PID.map (python3 -X perf, node --perf-basic-prof)\n"
		"  memory    trampolines of CPython that are in no file yet; not with --watch\n"
		"  executors what the JIT of CPython 3.14 has made, without names; not with --watch\n"
		"and those of the processes that it was forked from, up to the fork. FILE is a jitdump\n"
		"or a perf map; ./1234 if its name is a number.\n",
	.groups = jit_options_groups,
	.nr_groups = JIT_OPTIONS_NR_GROUPS,
	.operands = OPERAND_PID_OR_FILE,
	.epilogue =
		"Exit status: 0 printed, 1 error, or --verify found damage, 2 usage, 4 permission\n"
		"denied, 5 no source was found, nothing to check, or no function at ADDR.\n"
		"\n"
		"Examples:\n"
		"  pysample jit $(pgrep -n python3)\n"
		"  pysample jit --verify /tmp/jit-1234.dump\n"
		"  pysample jit --dump 0x7f3c60a01200 -o f.o 1234 && objdump -dl f.o\n",
	.run = run,
};
