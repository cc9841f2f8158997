/* SPDX-License-Identifier: MIT */
/*
 * Implements session.h. It is not session.c because session_notes.h and the others that it calls
 * include session.h: a module of that name would be part of a circle.
 */
#include "cmd/sampling/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/sampling/session_notes.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/sampling/session_rights.h"
#include "cmd/signals.h"
#include "output/run/loss.h"
#include "output/run/run.h"
#include "output/text/text.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/procfile.h"
#include "procmem/sched/cpu_clock.h"

bool session_keep_arguments(struct session *session, int argc, char **argv)
{
	struct text text = {0};

	text_puts(&text, "pysample");
	for (int i = 0; i < argc; i++) {
		text_puts(&text, " ");
		text_puts(&text, argv[i]);
	}
	if (text.error) {
		text_done(&text);
		print_error("out of memory");
		return false;
	}
	session->invocation.arguments = text.bytes;
	return true;
}

/* Describing the run. */

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * 1000u;
}

/* Returns our own peak memory. ru_maxrss would include what our parent had before exec. */
static uint64_t max_rss_kib(void)
{
	cleanup_close int proc_fd = procfile_open(AT_FDCWD, "/proc/self/status");
	char text[4096];
	uint64_t kib = 0;

	if (proc_fd >= 0 && procfile_read(proc_fd, text, sizeof(text)) > 0)
		(void)procfile_number(text, "VmHWM", 0, 10, &kib);
	return kib;
}

/* Sum up the counters so far, also while sampling. */
static void sum_counters(const struct session *session, struct sampler_stats *ret_stats)
{
	const struct live_memory *live = &session->target.live, *before = &session->live_before;

	*ret_stats = session->before.stats;
	if (!session->is_sampling)
		return;
	sampler_stats_add(ret_stats, sampler_stats(session->sampler));
	ret_stats->reads += live->nr_reads - before->nr_reads;
	ret_stats->other_syscalls += live->nr_checks - before->nr_checks;
	ret_stats->other_syscalls += live->nr_writes - before->nr_writes;
}

void session_count_native(const struct session *session, struct run_native *ret_native)
{
	const struct sampler_native_stats *stats;
	const struct perf_events_stats *events;

	*ret_native = session->before.native;
	if (!session->engine.native)
		return;
	stats = sampler_native_stats(session->engine.native);
	ret_native->is_on = true;
	ret_native->is_inferred |= !stats->is_proven;
	ret_native->user_cpu_only |= stats->is_user_only;
	if (!session->is_sampling)
		return;
	events = sampler_native_events(session->engine.native);
	ret_native->nr_stacks += stats->nr_stacks;
	ret_native->nr_c_gaps += stats->nr_c_gaps;
	ret_native->nr_python_gaps += stats->nr_python_gaps;
	ret_native->nr_without_copy += stats->nr_without_copy;
	ret_native->nr_foreign_copies += stats->nr_foreign_copies;
	ret_native->nr_copies += events->nr_copies;
	ret_native->nr_lost_copies += events->nr_lost;
	ret_native->nr_refused += events->nr_refused;
}

void session_describe(const struct session *session, struct run *ret_run)
{
	const struct sampling_options *options = &session->options;
	const struct target *target = &session->target;
	const struct py_build *build = &target->runtime.build;
	const struct profile_sums *sums = session_sink_sums(&session->sink);
	struct sampler_stats stats;
	struct rusage usage;

	sum_counters(session, &stats);
	if (session->is_sampling)
		stats.end_ns = clock_now_ns();
	(void)getrusage(RUSAGE_SELF, &usage);
	*ret_run = (struct run){
		.info =
			{
				.pysample = {.version = PYSAMPLE_VERSION,
					     .arguments = session->invocation.arguments,
					     .host = session->invocation.host[0]
							     ? session->invocation.host
							     : NULL},
				.start_unix_ns = session->realtime_ns +
						 (stats.start_ns ? stats.start_ns : clock_now_ns()),
				.target = {.command_line = target->command_line[0]
								   ? target->command_line
								   : NULL,
					   .pid = target->process.pid},
				.python = {.version = target->version[0] ? target->version : NULL,
					   .free_threaded = build->free_threaded,
					   .newer_than_tested = build->newer_than_tested,
					   .runtime_found_by = target->runtime.found_by},
				.mode = options->profile.mode,
				.shown_mode = options->profile.mode,
				.account = sums->account,
				.shown_ns = sums->time_ns,
				.engine = engine_name(session->engine.kind),
				.requested_hz = options->rate_hz,
				.resources = {.cpu_user_ns = timeval_ns(&usage.ru_utime),
					      .cpu_sys_ns = timeval_ns(&usage.ru_stime),
					      .max_rss_kib = max_rss_kib()},
			},
		.stats = stats,
	};
	session_count_native(session, &ret_run->info.native);
}

/* Opening. */

enum exit_status session_open_outputs(struct session *session, struct message *reterr)
{
	struct sampling_options *options = &session->options;
	enum exit_status status = outputs_open(&options->outputs, reterr);

	if (status == EXIT_OK)
		status = session_sink_open(&session->sink, &options->outputs, reterr);
	if (status != EXIT_OK || !options->stats_path)
		return status;
	if (output_file_open(options->stats_path, &session->stats_output, reterr) != 0)
		return EXIT_ERROR;
	if (!outputs_have(&options->outputs, &session->stats_output))
		return EXIT_OK;
	message_set(reterr,
		    "-o and --stats-json name the same file: give one of them another name");
	return EXIT_USAGE;
}

void session_destroy_sampler(struct session *session)
{
	engine_close(&session->engine);
	sampler_destroy(session->sampler);
	session->sampler = NULL;
}

/*
 * Create a sampler of the program and choose its engine. Returns 0, -ENOMEM, -ESRCH, or an errno.
 */
static int create_sampler(struct session *session)
{
	struct target *target = &session->target;
	int err;

	if (!session->options.read_only)
		live_memory_allow_writes(&target->live);
	err = target_create_sampler(target, &session->sampler);
	if (err)
		return err;
	sampler_set_extras(session->sampler, &session->options.extras);
	err = engine_open(&session->engine_options, target, session->sampler, &session->engine);
	if (!err)
		session_notes_native(session);
	return err;
}

/* Returns what the mode needs and this build of CPython does not have, or NULL. */
static const char *missing_for_mode(const struct py_offsets *offsets, enum profile_mode mode)
{
	if (mode == PROFILE_GIL && offsets->runtime.gil_locked == OFFSET_ABSENT &&
	    offsets->interpreter.gil_locked == OFFSET_ABSENT)
		return "who holds the GIL";
	if (mode == PROFILE_EXCEPTION && offsets->thread.raised == OFFSET_ABSENT)
		return "which exceptions are handled";
	return NULL;
}

/* Whether the kernel reports CPU times at all. */
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

/*
 * Check that this target can be shown in the requested mode. Returns EXIT_OK, or EXIT_ERROR with
 * a message.
 */
static enum exit_status check_mode(const struct session *session, struct message *reterr)
{
	const struct target *target = &session->target;
	const enum profile_mode mode = session->options.profile.mode;
	const char *missing = missing_for_mode(&target->runtime.build.offsets, mode);

	if (missing) {
		message_set(reterr, "CPython %s does not show %s: use --mode wall or --mode cpu",
			    target->version, missing);
		return EXIT_ERROR;
	}
	if (mode != PROFILE_CPU || has_cpu_times(&target->process))
		return EXIT_OK;
	message_set(reterr,
		    "this kernel reports the CPU time of threads neither by perf_event_open "
		    "nor by /proc/PID/task/TID/schedstat: use --mode wall");
	return EXIT_ERROR;
}

/*
 * Check that the requested engine can sample this target. Returns EXIT_OK, or EXIT_PERMISSION
 * with a message.
 */
static enum exit_status check_engine(const struct session *session, struct message *reterr)
{
	const struct engine_options *requested = &session->options.engine;
	const struct target *target = &session->target;

	if (requested->is_exact && requested->native && session->engine.kind != ENGINE_BPF) {
		message_set(reterr, "--exact with C frames requires engine bpf: %s",
			    session->engine.why_no_interrupts.text[0]
				    ? session->engine.why_no_interrupts.text
				    : "leave out --engine");
		return EXIT_PERMISSION;
	}
	if (!requested->is_named || requested->kind == session->engine.kind)
		return EXIT_OK;
	if (requested->kind != ENGINE_RACING)
		message_set(reterr, "--engine %s: %s", engine_name(requested->kind),
			    session->engine.why_no_interrupts.text);
	else
		message_set(
			reterr,
			"--engine racing requires CPython 3.11 or newer with a GIL, but process %d "
			"runs CPython %s%s: leave out --engine",
			target->process.pid, target->version,
			target->runtime.build.free_threaded ? " without a GIL" : "");
	return EXIT_PERMISSION;
}

static void show_progress(struct session *session, uint64_t now_ns)
{
	struct sampler_stats stats;
	struct progress_figures figures;

	sum_counters(session, &stats);
	figures = (struct progress_figures){
		.elapsed_ns = now_ns - stats.start_ns,
		.nr_samples = stats.samples,
		.nr_ticks = stats.ticks,
		.requested_hz = session->options.rate_hz,
		.lost_percent = loss_percent(&stats),
		.recorded_bytes = session_sink_bytes(&session->sink),
	};
	progress_show(&session->progress, &figures, now_ns);
}

/* Whether there was a sampler before this one. */
static bool has_stats(const struct session *session)
{
	return session->before.stats.start_ns != 0;
}

/* Interval at which the counters are summed up; a recording is flushed less often. */
#define SUM_EVERY_NS 100000000u

static int ticked(void *context, uint64_t now_ns)
{
	struct session *session = context;

	if (has_stats(session) && now_ns - session->recorded.at_ns >= SUM_EVERY_NS) {
		sum_counters(session, &session->recorded.stats);
		session->recorded.at_ns = now_ns;
	}
	if (progress_is_due(&session->progress, now_ns))
		show_progress(session, now_ns);
	return signals_take_write_request() ? session_write_now(session) : 0;
}

/*
 * Set host to where the target's paths are valid: the name of the machine, and the mount
 * namespace if that, or its root, is not ours. Paths from elsewhere are shown without source
 * lines, now and later.
 */
static void name_host(struct session *session)
{
	bool other = false;
	size_t length;

	(void)gethostname(session->invocation.host, sizeof(session->invocation.host) - 1);
	if (process_other_namespace(&session->target.process, "mnt", &other) == 0 && !other &&
	    process_has_our_root(&session->target.process))
		return;
	length = strlen(session->invocation.host);
	(void)snprintf(session->invocation.host + length, sizeof(session->invocation.host) - length,
		       ", mount namespace of process %d", session->target.process.pid);
}

/*
 * Prepare to collect the samples of the sampler, which must exist. Returns 0, or a negative errno
 * with a message.
 */
static int begin_sink(struct session *session, struct message *reterr)
{
	const struct sampling_options *options = &session->options;
	struct run run;

	session->sink.watcher = (struct session_watcher){ticked, session};
	session->realtime_ns = clock_ns(CLOCK_REALTIME) - clock_now_ns();
	name_host(session);
	session_describe(session, &run);
	return session_sink_begin(&session->sink, &options->outputs, &options->profile, &run,
				  reterr);
}

enum exit_status session_open_target(struct session *session, pid_t pid, struct message *reterr)
{
	enum exit_status status;
	int err;

	session->pid = pid;
	status = target_open(pid, &session->options.wait, &session->target, reterr);
	if (status == EXIT_OK)
		status = check_mode(session, reterr);
	if (status != EXIT_OK)
		return status;
	session->engine_options = session->options.engine;
	err = create_sampler(session);
	if (err)
		return target_explain(&session->target, err, reterr);
	status = check_engine(session, reterr);
	if (status != EXIT_OK)
		return status;
	if (begin_sink(session, reterr) != 0)
		return EXIT_ERROR;
	session->begun = true;
	return EXIT_OK;
}

/* Sampling. */

/* Compute what is left of the duration; 0 if it is unlimited. Returns false if it is over. */
static bool time_left(const struct session *session, uint64_t *ret_left_ns)
{
	uint64_t duration_ns = session->options.duration_ns;
	uint64_t gone_ns = session->before.stats.start_ns
				   ? clock_now_ns() - session->before.stats.start_ns
				   : 0;

	*ret_left_ns = duration_ns ? duration_ns - gone_ns : 0;
	return !duration_ns || gone_ns < duration_ns;
}

/* Set the counters for a recording: those of the first sampler itself, later the sum of all. */
static void start_counters(struct session *session)
{
	const struct sampler_stats *own = sampler_stats(session->sampler);

	session->is_sampling = true;
	session->live_before = session->target.live;
	sum_counters(session, &session->recorded.stats);
	session_sink_set_stats(&session->sink, has_stats(session) ? &session->recorded.stats : own);
}

/* Add the counters of a program that is no longer sampled to those of the run. */
static void add_program_counters(struct session *session)
{
	sum_counters(session, &session->before.stats);
	session_count_native(session, &session->before.native);
	session->is_sampling = false;
	session_sink_set_stats(&session->sink, &session->before.stats);
	session->course.cache_reason = sampler_cache_reason(session->sampler);
	session->before.has_foreign_runners = session->before.has_foreign_runners ||
					      sampler_has_foreign_runners(session->sampler);
	session->before.nr_unreachable += sampler_nr_unreachable(session->sampler);
}

/* Whether another engine may continue with the same program, given the options. */
static bool may_change(const struct engine_options *options)
{
	return !options->is_named && !(options->is_exact && options->native);
}

/* Sample the current program, and add its counters to those of the run. */
static int run_sampler(struct session *session, uint64_t duration_ns)
{
	const struct sampler_options options = {
		.engine = session->engine.kind,
		.ends_when_too_deep = may_change(&session->engine_options),
		.rate_hz = session->engine.kind == ENGINE_TICK
				   ? (double)NS_PER_S / (double)session->engine.period_ns
				   : session->options.rate_hz,
	};
	const struct sampler_limits limits = {
		.duration_ns = duration_ns,
		.stop = signals_stop_flag(),
	};
	int err;

	start_counters(session);
	err = sampler_run(session->sampler, &options, &limits, &session->sink.sink,
			  &session->course.end);
	add_program_counters(session);
	return err;
}

/*
 * Whether another engine continues with the program; its sampler is created then. *ret_err is an
 * error of that.
 */
static bool change_engine(struct session *session, int *ret_err)
{
	*ret_err = 0;
	if (!engine_change(&session->engine, &session->target, session->course.end,
			   &session->engine_options))
		return false;
	progress_clear(&session->progress);
	session_notes_change(session);
	session_destroy_sampler(session);
	session_sink_change_sampler(&session->sink);
	*ret_err = create_sampler(session);
	return true;
}

/*
 * Create the sampler for what came after the last interpreter. Returns 0, or errors of
 * sampler_create().
 */
static int begin_next(struct session *session)
{
	const bool had_interrupts = session->engine.before != NULL;
	bool is_new = session->course.after == TARGET_FOLLOWED;
	int err;

	session->course.nr_followed += is_new;
	session_sink_change_sampler(&session->sink);
	session->engine_options = session->options.engine;
	progress_clear(&session->progress);
	err = create_sampler(session);
	if (err)
		return err;
	if (had_interrupts && !session->engine.interrupts && session->has_fewer_rights)
		message_set(&session->engine.why_no_interrupts,
			    "this CPython has another layout than the previous one, and the right "
			    "to load a BPF program for it was given up when sampling began");
	if (is_new)
		session_notes_followed(session);
	return 0;
}

/*
 * Whether the next program can be sampled as requested. --exact is required; a named engine is
 * only preferred.
 */
static bool may_continue(struct session *session)
{
	struct message why = {0};

	if (check_engine(session, &why) == EXIT_OK)
		return true;
	if (!session->options.engine.is_exact) {
		if (!session->options.quiet)
			print_note("sampling continues with engine %s: %s",
				   engine_name(session->engine.kind), why.text);
		return true;
	}
	session->course.not_followed = why;
	session->course.after = TARGET_REFUSED;
	session->course.end = END_REPLACED;
	return false;
}

/*
 * Whether there is an interpreter to continue with; if not, session->course.end says why. The same
 * interpreter is continued with only if it had a tick since it was last found: otherwise one that
 * can never be read would be found again and again.
 */
static bool follow(struct session *session)
{
	struct target_wait wait = {
		.wait_ns = session->options.wait.wait_ns,
		.for_any = true,
		.stop = signals_stop_flag(),
	};
	bool had_ticks = sampler_stats(session->sampler)->ticks > 0;
	uint64_t left_ns;

	/* The new program has just begun, however long the wait for the first one. */
	if (wait.wait_ns < TARGET_STARTING_NS)
		wait.wait_ns = TARGET_STARTING_NS;
	session->course.end = END_DURATION;
	if (!time_left(session, &left_ns))
		return false;
	if (left_ns && left_ns < wait.wait_ns)
		wait.wait_ns = left_ns;
	engine_release(&session->engine);
	sampler_destroy(session->sampler);
	session->sampler = NULL;
	session->course.after =
		target_follow(&session->target, &wait, &session->course.not_followed);
	if (session->course.after == TARGET_FOLLOWED ||
	    (session->course.after == TARGET_SAME && had_ticks))
		return true;
	if (session->course.after == TARGET_INTERRUPTED)
		session->course.end = END_STOPPED;
	else
		session->course.end =
			session->course.after == TARGET_ENDED ? END_TARGET : END_REPLACED;
	return false;
}

/* Sample until the run ends, one program of the process after another. */
static int sample_programs(struct session *session)
{
	session->course.end = END_DURATION;
	for (uint64_t left_ns; time_left(session, &left_ns);) {
		int err = run_sampler(session, left_ns);

		/*
		 * A new program that cannot be read, such as a set-user-ID one, is tried again by
		 * follow().
		 */
		if (err == -EPERM && !session->sink.error &&
		    process_memory_is_gone(&session->target.process)) {
			err = 0;
			session->course.end = END_REPLACED;
		}
		if (!err && change_engine(session, &err)) {
			/* If the process has ended meanwhile, it is followed like any other. */
			if (err != -ESRCH) {
				if (err)
					return err;
				continue;
			}
			err = 0;
		}
		if (err || session->course.end == END_DURATION ||
		    session->course.end == END_STOPPED ||
		    sampler_end_is_out_of_reach(session->course.end))
			return err;
		if (!follow(session))
			return 0;
		err = begin_next(session);
		if (err || !may_continue(session))
			return err;
	}
	return 0;
}

/* Set the message for what ended the sampling early, and return the status. */
static enum exit_status explain(struct session *session, int err, struct message *reterr)
{
	if (!session->sink.error)
		return target_explain(&session->target, err, reterr);
	*reterr = session->sink.reason;
	return EXIT_ERROR;
}

enum exit_status session_sample(struct session *session, struct message *reterr)
{
	int err;

	session_notes_begin(session);
	session_drop_rights(session);
	if (!session->options.quiet)
		progress_begin(&session->progress, STDERR_FILENO,
			       session->is_child && isatty(STDOUT_FILENO), clock_now_ns());
	err = sample_programs(session);
	progress_end(&session->progress);
	/* Samples that were taken are written, whatever happened afterwards. */
	if (err && !session->before.stats.samples)
		return explain(session, err, reterr);
	if (!session->before.stats.samples) {
		session_explain_no_sample(session, reterr);
		return sampler_end_is_out_of_reach(session->course.end) ? EXIT_PERMISSION
									: EXIT_NO_SAMPLE;
	}
	if (err) {
		struct message reason = {0};

		(void)explain(session, err, &reason);
		print_error("sampling ended early: %s", reason.text);
	} else {
		session_notes_end(session);
	}
	/* A recording has the samples of all modes. */
	if (session_sink_sums(&session->sink)->account.nr_shown ||
	    !outputs_next(&session->options.outputs))
		return err ? EXIT_ERROR : EXIT_OK;
	session_explain_none_shown(session, reterr);
	return err ? EXIT_ERROR : EXIT_NO_SAMPLE;
}

void session_close(struct session *session)
{
	outputs_discard(&session->options.outputs);
	output_file_discard(&session->stats_output);
	session_destroy_sampler(session);
	session_sink_close(&session->sink);
	if (session->recording_fd >= 0)
		(void)close(session->recording_fd);
	target_close(&session->target);
	free(session->invocation.arguments);
}
