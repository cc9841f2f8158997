/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/sampling_options.h"

#include <stddef.h>

#include "cmd/option_values.h"
#include "cmd/print.h"
#include "cmd/signals.h"
#include "procmem/clock.h"

/* Each sample takes the CPU from the target for some tens of microseconds. */
#define DEFAULT_RATE_HZ 100.0

/*
 * A faster recording has no CPU times by default, because each one interrupts the thread: at 10
 * kHz they cost 12 % of a core, and some percent of the program's speed.
 */
#define MAX_CPU_RATE_HZ 2e3

#define SUMMARY_MAX_ROWS 30

/* The list of kept files is in memory. */
#define MAX_KEEP 100000

static bool apply_rate(void *options, const char *value)
{
	if (parse_rate(value, &((struct sampling_options *)options)->rate_hz))
		return true;
	print_error("'%s' is not a rate: use 100, 1khz, 10k or max (0.01 Hz to 10 kHz)", value);
	return false;
}

static bool apply_duration(void *options, const char *value)
{
	if (parse_duration(value, &((struct sampling_options *)options)->duration_ns))
		return true;
	print_error("'%s' is not a duration: use 10, 2.5, 500ms, 90s, 5m or 1h", value);
	return false;
}

static bool apply_loop(void *options, const char *value)
{
	uint64_t *loop_ns = &((struct sampling_options *)options)->loop_ns;

	if (parse_duration(value, loop_ns) && *loop_ns >= NS_PER_S)
		return true;
	print_error("'%s' is not a period of at least one second: use 60, 90s, 5m or 1h", value);
	return false;
}

static bool apply_keep(void *options, const char *value)
{
	uint32_t *nr_keep = &((struct sampling_options *)options)->nr_keep;

	if (parse_count(value, MAX_KEEP, nr_keep) && *nr_keep)
		return true;
	print_error("'%s' is not a number of files from 1 to %d", value, MAX_KEEP);
	return false;
}

static bool apply_engine(void *options, const char *value)
{
	if (engine_select(&((struct sampling_options *)options)->engine, value))
		return true;
	print_error("unknown engine '%s': use bpf, tick, preempt or racing", value);
	return false;
}

static bool set_cpu(struct sampling_options *options, bool is_wanted)
{
	options->extras.cpu = is_wanted;
	options->cpu_is_given = true;
	return true;
}

static bool apply_cpu(void *options, const char *value)
{
	(void)value;
	return set_cpu(options, true);
}

static bool apply_no_cpu(void *options, const char *value)
{
	(void)value;
	return set_cpu(options, false);
}

static bool apply_async(void *options, const char *value)
{
	enum sampler_tasks *tasks = &((struct sampling_options *)options)->extras.tasks;

	if (value && strcmp(value, "all") != 0 && strcmp(value, "running") != 0) {
		print_error("--async=%s: use running or all", value);
		return false;
	}
	*tasks = value && strcmp(value, "all") == 0 ? TASKS_ALL : TASKS_RUNNING;
	return true;
}

static bool apply_verbose(void *options, const char *value)
{
	struct sampling_options *sampling = options;

	(void)value;
	sampling->verbose = true;
	sampling->engine.is_verbose = true;
	return true;
}

const struct option_spec sampling_rate_options[SAMPLING_NR_RATE_OPTIONS] = {
	{"rate", "HZ", "samples per second: 100, 1khz, 10k, max (default: 100)", .letter = 'r',
	 .apply = apply_rate},
	{"duration", "TIME",
	 "how long to sample: 10, 2.5, 500ms, 5m, 1h (default: until\n"
	 "the process ends)",
	 .letter = 'd', .apply = apply_duration},
	{"subprocesses", NULL,
	 "also sample all processes that the process has started or\n"
	 "starts, and those that these start",
	 .letter = 's', .action = OPTION_SETS,
	 .at = offsetof(struct sampling_options, subprocesses)},
	{"engine", "NAME",
	 "how stacks are read (default: bpf where it is allowed, else\n"
	 "preempt, or racing if the process runs only on CPUs that\n"
	 "pysample may not use).\n"
	 "bpf: inside the threads' own timer interrupts; exact on every\n"
	 "CPU, also without a GIL, and the cheapest for the process\n"
	 "(CAP_BPF and CAP_PERFMON, or root; Linux 5.17).\n"
	 "preempt: while pysample holds the thread's CPU; exact.\n"
	 "tick: like bpf, inside the kernel's own timer tick, at no\n"
	 "extra cost; work in step with the tick is misrepresented\n"
	 "(needs what bpf needs, and CAP_SYSLOG for kernel addresses; at\n"
	 "most the kernel's HZ; not with -n).\n"
	 "racing: while the threads run; approximate (CPython 3.11 and\n"
	 "newer, with a GIL; not with -n)",
	 .apply = apply_engine, .words = "bpf preempt tick racing"},
	{"exact", NULL,
	 "refuse approximate results: exit with status 4 instead of\n"
	 "racing, or with -n if BPF is unavailable",
	 .action = OPTION_SETS, .at = offsetof(struct sampling_options, engine.is_exact)},
	{"cpu", NULL,
	 "measure CPU times in every mode (default: in recordings up to\n"
	 "2 kHz and the formats made from them)",
	 .apply = apply_cpu},
	{"no-cpu", NULL, "do not measure CPU times", .apply = apply_no_cpu},
};

const struct option_spec sampling_writing_options[1] = {
	{"read-only", NULL,
	 "never write to the process; by default one word of 3.15 for\n"
	 "profilers is written, which makes deep stacks faster to sample",
	 .action = OPTION_SETS, .at = offsetof(struct sampling_options, read_only)},
};

const struct option_spec sampling_stack_options[SAMPLING_NR_STACK_OPTIONS] = {
	{"native", NULL,
	 "merge C frames with Python frames: of the same instant with\n"
	 "engine bpf, else placed by evidence. [unknown] marks frames\n"
	 "that could not be proven, ?? code without a symbol (libc:\n"
	 "install libc6-dbg)",
	 .letter = 'n', .action = OPTION_SETS,
	 .at = offsetof(struct sampling_options, engine.native)},
	{"async", "[=all]",
	 "root samples at the asyncio task that ran, below the tasks\n"
	 "that await it (3.8 and newer); uses engine preempt. all: also\n"
	 "show what the other tasks wait for, by wall-clock time",
	 .apply = apply_async, .words = "running all"},
	{"trampolines", NULL,
	 "with -n, show the -X perf trampolines, through which CPython\n"
	 "calls each Python function, as separate frames",
	 .action = OPTION_SETS, .at = offsetof(struct sampling_options, engine.keeps_trampolines)},
	{"kernel", NULL,
	 "with -n, add kernel functions for threads inside the kernel\n"
	 "(running threads need CAP_PERFMON and CAP_SYSLOG, or what\n"
	 "perf_event_paranoid and kptr_restrict allow; waiting ones need\n"
	 "CAP_SYS_ADMIN)",
	 .action = OPTION_SETS, .at = offsetof(struct sampling_options, engine.kernel_frames)},
};

const struct option_spec sampling_collector_options[SAMPLING_NR_COLLECTOR_OPTIONS] = {
	{"gc", NULL, "add a frame <GC> during garbage collection (default)", .action = OPTION_SETS,
	 .at = offsetof(struct sampling_options, extras.gc)},
	{"no-gc", NULL, "do not add <GC> frames", .action = OPTION_CLEARS,
	 .at = offsetof(struct sampling_options, extras.gc)},
};

static const struct option_spec period_rows[] = {
	{"loop", "TIME",
	 "begin new files each TIME (60s, 5m, 1h; at least 1s), without\n"
	 "a gap. Their names need %t (the start in local time, as\n"
	 "20260131T235959) or %n (1, 2, …), and may have %p (process\n"
	 "id) and %h (host): -o 'app-%t.pysample'. If a name is taken,\n"
	 "-2, -3, … is added",
	 .apply = apply_loop},
	{"keep", "N", "with --loop, keep the files of the last N periods only",
	 .apply = apply_keep},
};

static const struct option_spec note_rows[] = {
	{"stats-json", "FILE", "write the counters of the run as one JSON object",
	 .action = OPTION_STORES, .at = offsetof(struct sampling_options, stats_path)},
};

static const struct option_spec verbose_rows[] = {
	{"verbose", NULL, "print what was found and what sampling cost", .letter = 'v',
	 .apply = apply_verbose},
};

const struct option_group sampling_options_groups[SAMPLING_OPTIONS_NR_GROUPS] = {
	{"Process:", process_name_option, 1, offsetof(struct sampling_options, process_name)},
	{"Sampling:", sampling_rate_options, SAMPLING_NR_RATE_OPTIONS, .at = 0},
	{NULL, wait_option, 1, offsetof(struct sampling_options, wait)},
	{NULL, sampling_writing_options, 1, .at = 0},
	{NULL, thread_option, 1, offsetof(struct sampling_options, threads)},
	{"Stacks:", sampling_stack_options, SAMPLING_NR_STACK_OPTIONS, .at = 0},
	{NULL, plumbing_option, 1, offsetof(struct sampling_options, profile)},
	{NULL, sampling_collector_options, 2, .at = 0},
	{"Output:", output_options, 2, offsetof(struct sampling_options, outputs)},
	{NULL, open_option, 1, offsetof(struct sampling_options, outputs)},
	{NULL, mode_options, 2, offsetof(struct sampling_options, mode)},
	{NULL, row_options, 3, offsetof(struct sampling_options, profile)},
	{NULL, processes_option, 1, offsetof(struct sampling_options, profile)},
	{NULL, layout_options, 2, offsetof(struct sampling_options, layout)},
	{NULL, full_command_option, 1, offsetof(struct sampling_options, full_command)},
	{NULL, period_rows, 2, .at = 0},
	{NULL, note_rows, 1, .at = 0},
	{NULL, quiet_option, 1, offsetof(struct sampling_options, quiet)},
	{NULL, verbose_rows, 1, .at = 0},
};

struct sampling_options sampling_options_default(void)
{
	struct sampling_options options = {
		.rate_hz = DEFAULT_RATE_HZ,
		.wait = TARGET_WAIT_DEFAULT,
		.profile = {.by_process = true},
		.extras = {.gc = true},
		.layout = {.max_rows = SUMMARY_MAX_ROWS},
	};

	options.wait.stop = signals_stop_flag();
	return options;
}

/* Choose what is read beside the stacks, as the mode and the outputs need it. */
static void choose_extras(struct sampling_options *options)
{
	const enum profile_mode mode = options->profile.mode;
	const bool keeps_all = outputs_need_samples(&options->outputs);

	if (!options->cpu_is_given)
		options->extras.cpu =
			(keeps_all && options->rate_hz <= MAX_CPU_RATE_HZ) || mode == PROFILE_CPU;
	options->extras.states = keeps_all || mode == PROFILE_BUSY;
	options->extras.exceptions = keeps_all || mode == PROFILE_EXCEPTION;
}

/* Returns the first given option that only applies to C frames, or NULL if there is none. */
static const char *native_option(const struct sampling_options *options)
{
	return options->engine.kernel_frames	   ? "--kernel"
	       : options->engine.keeps_trampolines ? "--trampolines"
	       : options->profile.keep_plumbing	   ? "--plumbing"
						   : NULL;
}

/* Check that the engine goes with the other options. Returns false after printing an error. */
static bool check_engine(const struct engine_options *engine, enum sampler_tasks tasks)
{
	const bool races = engine->is_named && engine->kind == ENGINE_RACING;

	if (engine->is_exact && races) {
		print_error("--engine racing is approximate: leave out --exact");
		return false;
	}
	if (tasks != TASKS_NONE && engine->is_named && engine->kind != ENGINE_PREEMPT) {
		print_error("tasks are read while pysample holds the CPU of their thread: use "
			    "--engine preempt, or leave out --async");
		return false;
	}
	if (engine->native && races) {
		print_error(
			"C frames need stacks of one instant: leave out --engine racing, or -n");
		return false;
	}
	if (engine->native && engine->is_named && engine->kind == ENGINE_TICK) {
		print_error("the kernel copies no C stacks at its tick: leave out --engine tick, "
			    "or -n");
		return false;
	}
	return true;
}

/* Choose what does not depend on the outputs. Returns false after printing an error. */
static bool choose_sampling(struct sampling_options *options)
{
	/* Tasks that wait are idle. */
	if (!mode_choose(&options->mode,
			 options->extras.tasks == TASKS_ALL ? PROFILE_WALL : PROFILE_BUSY,
			 &options->profile.mode) ||
	    !check_engine(&options->engine, options->extras.tasks))
		return false;
	if (options->profile.mode == PROFILE_CPU && options->cpu_is_given && !options->extras.cpu) {
		print_error("--mode cpu shows CPU times: leave out --no-cpu");
		return false;
	}
	if (!options->engine.native && native_option(options)) {
		print_error("%s requires -n", native_option(options));
		return false;
	}
	if (options->extras.tasks && !options->engine.is_named) {
		options->engine.kind = ENGINE_PREEMPT;
		options->engine.is_named = true;
	}
	options->engine.period_ns = (uint64_t)(NS_PER_S / options->rate_hz);
	return true;
}

bool sampling_options_choose(struct sampling_options *options)
{
	if (options->nr_keep && !options->loop_ns) {
		print_error("--keep requires --loop: without it no file is removed");
		return false;
	}
	if (options->outputs.opens && options->loop_ns) {
		print_error("--open opens one page, and --loop writes many: leave out one");
		return false;
	}
	options->outputs.of_tree = options->subprocesses;
	if (!choose_sampling(options) || !outputs_choose(&options->outputs) ||
	    !outputs_use_patterns(&options->outputs, options->loop_ns != 0))
		return false;
	choose_extras(options);
	return true;
}

bool sampling_options_choose_view(struct sampling_options *options)
{
	if (!choose_sampling(options))
		return false;
	choose_extras(options);
	options->extras.states = true;
	return true;
}
