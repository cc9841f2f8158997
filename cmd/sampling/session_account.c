/* SPDX-License-Identifier: MIT */
/* What a session's run was and what it counted (session.h). */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/sampling/session.h"
#include "output/run/run_part.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/procfile.h"

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

/* Add the counters of a process that is being sampled. */
static void add_process(const struct session_process *process, struct sampler_stats *stats)
{
	const struct live_memory *live = &process->target.live, *before = &process->live_before;

	if (process->state != PROCESS_SAMPLED)
		return;
	sampler_stats_add(stats, sampler_stats(process->sampler));
	stats->reads += live->nr_reads - before->nr_reads;
	stats->other_syscalls += live->nr_checks - before->nr_checks;
	stats->other_syscalls += live->nr_writes - before->nr_writes;
}

void session_sum_counters(const struct session *session, struct sampler_stats *ret_stats)
{
	*ret_stats = session->before.stats;
	if (session->group)
		ret_stats->paused_ns = sampler_group_paused_ns(session->group);
	add_process(&session->root, ret_stats);
	for (uint32_t i = 0; i < session->children.nr; i++)
		add_process(session->children.list[i], ret_stats);
}

/* Add the C frames of a process. */
static void add_native(const struct session_process *process, struct run_native *native)
{
	const struct sampler_native_stats *stats;
	const struct perf_events_stats *events;

	if (!process->engine.native)
		return;
	stats = sampler_native_stats(process->engine.native);
	native->is_on = true;
	native->is_inferred |= !stats->is_proven;
	native->user_cpu_only |= stats->is_user_only;
	if (process->state != PROCESS_SAMPLED)
		return;
	events = sampler_native_events(process->engine.native);
	native->nr_stacks += stats->nr_stacks;
	native->nr_c_gaps += stats->nr_c_gaps;
	native->nr_python_gaps += stats->nr_python_gaps;
	native->nr_without_copy += stats->nr_without_copy;
	native->nr_foreign_copies += stats->nr_foreign_copies;
	native->nr_copies += events->nr_copies;
	native->nr_lost_copies += events->nr_lost;
	native->nr_refused += events->nr_refused;
}

void session_count_native(const struct session *session, struct run_native *ret_native)
{
	*ret_native = session->before.native;
	add_native(&session->root, ret_native);
	for (uint32_t i = 0; i < session->children.nr; i++)
		add_native(session->children.list[i], ret_native);
}

void session_add_counters(struct session *session, struct session_process *process)
{
	struct session_sums *before = &session->before;

	add_process(process, &before->stats);
	add_native(process, &before->native);
	before->has_foreign_runners =
		before->has_foreign_runners || sampler_has_foreign_runners(process->sampler);
	before->nr_unreachable += sampler_nr_unreachable(process->sampler);
	process->has_samples = process->has_samples || sampler_stats(process->sampler)->samples > 0;
}

void session_describe(const struct session *session, struct run *ret_run)
{
	const struct sampling_options *options = &session->options;
	const struct target *target = &session->root.target;
	const struct py_build *build = &target->runtime.build;
	const struct profile_sums *sums = session_sink_sums(&session->sink);
	struct sampler_stats stats;
	struct rusage usage;

	session_sum_counters(session, &stats);
	if (session->group)
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
				.start_unix_ns = session->invocation.realtime_ns +
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
				.has_states = options->extras.states,
				.account = sums->account,
				.shown_ns = sums->time_ns,
				.engine = engine_name(session->root.engine.kind),
				.requested_hz = options->rate_hz,
				.resources = {.cpu_user_ns = timeval_ns(&usage.ru_utime),
					      .cpu_sys_ns = timeval_ns(&usage.ru_stime),
					      .max_rss_kib = max_rss_kib()},
			},
		.stats = stats,
	};
	session_count_native(session, &ret_run->info.native);
	profile_account_add(&ret_run->info.account, &session->periods.before.info.account);
	ret_run->info.shown_ns += session->periods.before.info.shown_ns;
}

void session_describe_period(const struct session *session, struct run *ret_run)
{
	session_describe(session, ret_run);
	run_subtract(ret_run, &session->periods.before);
}
