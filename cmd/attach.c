/* SPDX-License-Identifier: MIT */
/* pysample attach: samples a running process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/attach.h"
#include "cmd/attach_notes.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "output/collapsed.h"
#include "output/profile.h"
#include "output/run_info.h"
#include "output/stats.h"
#include "output/summary.h"
#include "procmem/cleanup.h"
#include "procmem/cpu_clock.h"
#include "procmem/procfile.h"
#include "sampler/sampler.h"
#include "sampler/ticker.h"

#define SUMMARY_MAX_ROWS 30

/* Set by SIGINT, SIGTERM and SIGHUP: finish the profile and write it. */
static volatile sig_atomic_t stop_requested;

static void on_signal(int signal_number)
{
	if (stop_requested)
		_exit(128 + signal_number);
	stop_requested = 1;
}

/*
 * The first signal finishes the profile, a second one aborts. flags: SA_RESTART once
 * the profile is written, so that the first one does not end that; 0 before, where it
 * has to end the opening of a pipe that nobody reads.
 */
static void catch_signals(int flags)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction before;

		/* As nohup and shells without job control ask for it. */
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		(void)sigaction(signals[i], &action, NULL);
	}
	/* A closed pipe or a limit of size is an error of the write, to be reported as one. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * 1000u;
}

/* The peak of our own memory. ru_maxrss would count what our parent had before exec, too. */
static uint64_t max_rss_kib(void)
{
	cleanup_close int proc_fd = procfile_open(AT_FDCWD, "/proc/self/status");
	char text[4096];
	uint64_t kib = 0;

	if (proc_fd >= 0 && procfile_read(proc_fd, text, sizeof(text)) > 0)
		(void)procfile_number(text, "VmHWM", 0, 10, &kib);
	return kib;
}

/* profile is NULL if there was no target. */
static struct run_info describe_run(const struct attach_options *options,
				    const struct target *target, const struct profile *profile)
{
	const struct profile_account nothing = {0};
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (struct run_info){
		.command_line = target->command_line[0] ? target->command_line : NULL,
		.pid = target->process.pid,
		.python = target->version[0] ? target->version : NULL,
		.python_free_threaded = target->runtime.build.free_threaded,
		.python_newer_than_tested = target->runtime.build.newer_than_tested,
		.runtime_found_by = target->runtime.found_by,
		.mode = options->profile.mode,
		.account = profile ? profile_sums(profile, PROFILE_SELF)->account : nothing,
		.shown_ns = profile ? profile_sums(profile, PROFILE_SELF)->time_ns : 0,
		.asked_hz = options->rate_hz,
		.cpu_user_ns = timeval_ns(&usage.ru_utime),
		.cpu_sys_ns = timeval_ns(&usage.ru_stime),
		.max_rss_kib = max_rss_kib(),
	};
}

static struct artefact_options summary_layout(FILE *out)
{
	struct winsize size;
	bool terminal = isatty(fileno(out));
	const char *no_colour = getenv("NO_COLOR");

	return (struct artefact_options){
		.max_rows = SUMMARY_MAX_ROWS,
		.columns = terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0,
		.colour = terminal && (!no_colour || !*no_colour),
	};
}

static int write_profile(const struct attach *attach, const struct run_info *info, FILE *out)
{
	const struct run run = {*info, attach->stats};
	struct artefact artefact = {.profile = attach->profile, .runs = &run, .nr_runs = 1};

	if (attach->options.format == FORMAT_COLLAPSED)
		return collapsed_write(&artefact, out);
	artefact.options = summary_layout(out);
	return summary_write(&artefact, out);
}

static int write_stats(const struct attach *attach, const struct run_info *info, FILE *out)
{
	return stats_write_json(&attach->stats, info, out);
}

/* Write one file with one of the above; EXIT_ERROR after an error was printed. */
static enum exit_status write_file(const struct attach *attach, const struct run_info *info,
				   int (*write)(const struct attach *attach,
						const struct run_info *info, FILE *out),
				   struct output_file *file)
{
	struct message message = {0};
	int err = output_file_begin(file, &message);

	if (!err)
		err = output_file_finish(file, write(attach, info, file->stream), &message);
	if (err)
		print_error("%s", message.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* Write everything that was asked for and that there is something to say in. */
static enum exit_status write_outputs(struct attach *attach)
{
	struct run_info info = describe_run(&attach->options, &attach->target, attach->profile);
	enum exit_status profile_status = EXIT_OK, stats_status = EXIT_OK;

	catch_signals(SA_RESTART);
	if (attach->profile && profile_sums(attach->profile, PROFILE_SELF)->account.nr_shown)
		profile_status = write_file(attach, &info, write_profile, &attach->output);
	if (attach->options.stats_path)
		stats_status = write_file(attach, &info, write_stats, &attach->stats_output);
	return profile_status == EXIT_OK ? stats_status : profile_status;
}

static enum exit_status open_outputs(struct attach *attach, struct message *reterr)
{
	const struct attach_options *options = &attach->options;

	if (output_file_open(options->output_path, &attach->output, reterr) != 0)
		return EXIT_ERROR;
	if (!options->stats_path)
		return EXIT_OK;
	if (output_file_open(options->stats_path, &attach->stats_output, reterr) != 0)
		return EXIT_ERROR;
	if (!output_file_same(&attach->output, &attach->stats_output))
		return EXIT_OK;
	message_set(reterr,
		    "-o and --stats-json name the same file: give one of them another name");
	return EXIT_USAGE;
}

static int create_sampler(struct attach *attach)
{
	struct target *target = &attach->target;
	int err;

	if (!attach->options.read_only)
		live_memory_allow_writes(&target->live);
	err = sampler_create(&target->process, &target->live.memory, &target->runtime.build,
			     target->runtime.addr, &attach->sampler);
	if (!err)
		sampler_set_looks(attach->sampler, &attach->options.looks);
	return err;
}

/* What a mode needs and this build of CPython does not tell; NULL if there is nothing. */
static const char *missing_for_mode(const struct py_offsets *offsets, enum profile_mode mode)
{
	if (mode == PROFILE_GIL && offsets->runtime.gil_locked == OFFSET_ABSENT &&
	    offsets->interpreter.gil_locked == OFFSET_ABSENT)
		return "who holds the GIL";
	if (mode == PROFILE_EXCEPTION && offsets->thread.raised == OFFSET_ABSENT)
		return "what exceptions are handled";
	return NULL;
}

/* Whether the kernel tells CPU times at all. */
static bool has_cpu_times(const struct process *process)
{
	struct cpu_clock clock = {0};
	pid_t tid;
	int err = process_live_thread(process, &tid);

	if (!err)
		err = cpu_clock_open(process, tid, &clock);
	cpu_clock_close(&clock);
	return err != -ENOTSUP;
}

/* Whether this target can be shown in the mode asked for; EXIT_ERROR with a sentence if not. */
static enum exit_status check_mode(const struct attach *attach, struct message *reterr)
{
	const struct target *target = &attach->target;
	const enum profile_mode mode = attach->options.profile.mode;
	const char *missing = missing_for_mode(&target->runtime.build.offsets, mode);

	if (missing) {
		message_set(reterr,
			    "of CPython %s %s cannot be told: use --mode wall or --mode cpu",
			    target->version, missing);
		return EXIT_ERROR;
	}
	if (mode != PROFILE_CPU || has_cpu_times(&target->process))
		return EXIT_OK;
	message_set(reterr, "this kernel tells the CPU time of threads neither by perf_event_open "
			    "nor by /proc/PID/task/TID/schedstat: use --mode wall");
	return EXIT_ERROR;
}

/* Open what can be refused before the sampling begins. */
static enum exit_status prepare(struct attach *attach, struct message *reterr)
{
	const struct attach_options *options = &attach->options;
	enum exit_status status;
	int err;

	status = open_outputs(attach, reterr);
	if (status != EXIT_OK)
		return status;
	status = target_open(options->pid, &options->wait, &attach->target, reterr);
	if (status != EXIT_OK)
		return status;
	status = check_mode(attach, reterr);
	if (status != EXIT_OK)
		return status;
	attach->profile = profile_create(&options->profile);
	err = attach->profile ? create_sampler(attach) : -ENOMEM;
	attach->begun = !err;
	return err ? target_explain(&attach->target, err, reterr) : EXIT_OK;
}

/* What is left of the duration; 0 if it has none. False if it is over. */
static bool time_left(const struct attach *attach, uint64_t *ret_left_ns)
{
	uint64_t duration_ns = attach->options.duration_ns;
	uint64_t gone_ns = attach->stats.start_ns ? clock_now_ns() - attach->stats.start_ns : 0;

	*ret_left_ns = duration_ns ? duration_ns - gone_ns : 0;
	return !duration_ns || gone_ns < duration_ns;
}

/* Sample the program that runs now and add its counters to the run's. */
static int sample_program(struct attach *attach, uint64_t duration_ns, enum sampler_end *ret_end)
{
	const struct sampler_options options = {
		.rate_hz = attach->options.rate_hz,
		.jitter = attach->options.jitter,
		.duration_ns = duration_ns,
		.stop = &stop_requested,
	};
	const struct live_memory *live = &attach->target.live;
	const struct live_memory before = *live;
	int err = sampler_run(attach->sampler, &options, profile_sink(attach->profile), ret_end);

	sampler_stats_add(&attach->stats, sampler_stats(attach->sampler));
	attach->cache_reason = sampler_cache_reason(attach->sampler);
	attach->stats.reads += live->nr_reads - before.nr_reads;
	attach->stats.other_syscalls += live->nr_checks - before.nr_checks;
	attach->stats.other_syscalls += live->nr_writes - before.nr_writes;
	return err;
}

/* Begin with what came after the last interpreter. 0; errors of sampler_create(). */
static int begin_next(struct attach *attach)
{
	bool is_new = attach->after == TARGET_FOLLOWED;

	attach->nr_followed += is_new;
	profile_change_sampler(attach->profile);
	if (is_new && attach->options.verbose && !attach->options.quiet) {
		print_note("followed into %s, CPython %s", attach->target.command_line,
			   attach->target.version);
		target_print_doubts(&attach->target);
		target_print_found(&attach->target);
	}
	return create_sampler(attach);
}

/*
 * Whether there is an interpreter to go on with. Else *ret_end says why not. The one that
 * was sampled is gone on with only if there was a tick of it since it was found last: what
 * cannot be read for good would be found again and again.
 */
static bool follow(struct attach *attach, enum sampler_end *ret_end)
{
	struct target_wait wait = {
		.wait_ns = attach->options.wait.wait_ns,
		.for_any = true,
		.stop = &stop_requested,
	};
	bool had_ticks = sampler_stats(attach->sampler)->ticks > 0;
	uint64_t left_ns;

	/* The new program has just begun, whatever was said of the first one. */
	if (wait.wait_ns < TARGET_STARTING_NS)
		wait.wait_ns = TARGET_STARTING_NS;
	*ret_end = END_DURATION;
	if (!time_left(attach, &left_ns))
		return false;
	if (left_ns && left_ns < wait.wait_ns)
		wait.wait_ns = left_ns;
	sampler_destroy(attach->sampler);
	attach->sampler = NULL;
	attach->after = target_follow(&attach->target, &wait, &attach->not_followed);
	if (attach->after == TARGET_FOLLOWED || (attach->after == TARGET_SAME && had_ticks))
		return true;
	if (attach->after == TARGET_NOT_AWAITED)
		*ret_end = END_STOPPED;
	else
		*ret_end = attach->after == TARGET_ENDED ? END_TARGET : END_REPLACED;
	return false;
}

/* Sample until the end of the run, one program of the process after the other. */
static int sample_programs(struct attach *attach, enum sampler_end *ret_end)
{
	*ret_end = END_DURATION;
	for (uint64_t left_ns; time_left(attach, &left_ns);) {
		int err = sample_program(attach, left_ns, ret_end);

		/* A set-user-ID program, for one, may not be read; whether it may is asked anew. */
		if (err == -EPERM && process_memory_gone(&attach->target.process)) {
			err = 0;
			*ret_end = END_REPLACED;
		}
		if (err || *ret_end == END_DURATION || *ret_end == END_STOPPED)
			return err;
		if (!follow(attach, ret_end))
			return 0;
		err = begin_next(attach);
		if (err)
			return err;
	}
	return 0;
}

static enum exit_status sample(struct attach *attach, struct message *reterr)
{
	enum sampler_end end;
	int err;

	attach_notes_begin(attach);
	err = sample_programs(attach, &end);
	/* Samples that were taken are written whatever came after them. */
	if (err && !attach->stats.samples)
		return target_explain(&attach->target, err, reterr);
	if (!attach->stats.samples) {
		attach_explain_no_sample(attach, end, reterr);
		return EXIT_NO_SAMPLE;
	}
	if (err) {
		struct message reason = {0};

		(void)target_explain(&attach->target, err, &reason);
		print_error("sampling ended early: %s", reason.text);
	} else {
		attach_notes_end(attach, end);
	}
	if (profile_sums(attach->profile, PROFILE_SELF)->account.nr_shown)
		return err ? EXIT_ERROR : EXIT_OK;
	attach_explain_none_shown(attach, reterr);
	return err ? EXIT_ERROR : EXIT_NO_SAMPLE;
}

enum exit_status command_attach(int argc, char **argv)
{
	struct attach attach = {.target.process = PROCESS_CLOSED};
	struct message message = {0};
	bool done;
	enum exit_status status = attach_options_parse(argc, argv, &attach.options, &done);

	if (status != EXIT_OK || done)
		return status;
	attach.options.wait.stop = &stop_requested;
	catch_signals(0);
	status = prepare(&attach, &message);
	if (status == EXIT_OK)
		status = sample(&attach, &message);
	if (message.text[0])
		print_error("%s", message.text);
	/* Without samples there are counters still, if only to say that there were none. */
	if (attach.begun || status == EXIT_NO_SAMPLE) {
		enum exit_status written = write_outputs(&attach);

		status = status == EXIT_OK ? written : status;
	}
	output_file_discard(&attach.output);
	output_file_discard(&attach.stats_output);
	sampler_destroy(attach.sampler);
	profile_destroy(attach.profile);
	target_close(&attach.target);
	return status;
}
