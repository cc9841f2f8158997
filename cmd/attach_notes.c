/* SPDX-License-Identifier: MIT */
#include "cmd/attach_notes.h"

#include "cmd/print.h"
#include "output/loss.h"
#include "output/stats.h"
#include "sampler/sample.h"

/* So many trimmed samples, in percent, shift a profile enough to be told without -v. */
#define WORTH_A_NOTE 1.0

/* How the run ended, for the line that says what there is. */
static const char *end_reason(const struct attach *attach, enum sampler_end end)
{
	static const char *const reasons[] = {
		[TARGET_ENDED] = "the process has ended; ",
		[TARGET_NO_PYTHON] =
			"the process has replaced its program by one without CPython; ",
		[TARGET_NO_INTERPRETER] = "the process has ended its interpreter, or begun none; ",
		[TARGET_REFUSED] = "the process has replaced its program; ",
		[TARGET_SAME] = "the threads of the interpreter cannot be listed any more; ",
	};

	if (end == END_DURATION)
		return "";
	return end == END_STOPPED ? "stopped; " : reasons[attach->after];
}

/* What the mode shows of it, and how well CPU times were measured. */
static void print_mode(const struct attach *attach)
{
	const struct sampler_stats *stats = &attach->stats;
	const enum profile_mode mode = attach->options.profile.mode;

	if (mode != PROFILE_WALL)
		print_note("mode %s: %llu samples shown, %.3f s of %s%s", profile_mode_name(mode),
			   (unsigned long long)profile_account(attach->profile)->nr_shown,
			   (double)profile_time_ns(attach->profile) / NS_PER_S,
			   profile_mode_time(mode),
			   attach->options.format == FORMAT_COLLAPSED && mode == PROFILE_CPU
				   ? "; stacks are counted in microseconds"
				   : "");
	if (stats->clockless)
		print_note("the CPU time of %llu threads could not be measured: no descriptors "
			   "were left (ulimit -n), or they ended at once",
			   (unsigned long long)stats->clockless);
	if (stats->rough_clocks)
		print_note("perf_event_open is not allowed (kernel.perf_event_paranoid above 2, or "
			   "a sandbox): CPU times are told at the kernel's timer ticks only "
			   "(threads: %llu)",
			   (unsigned long long)stats->rough_clocks);
}

/* Whether deep stacks were copied in part, which takes a word in the target. */
static void print_cache(const struct attach *attach)
{
	static const char *const reasons[] = {
		[CACHE_NO_WORD] =
			"this CPython has no last_profiled_frame, or it is not known where",
		[CACHE_READ_ONLY] = "nothing is to be written to the process",
		[CACHE_REFUSED] = "it cannot be written to",
		[CACHE_SHARED] = "another profiler uses last_profiled_frame, too",
	};
	const struct sampler_stats *stats = &attach->stats;

	if (attach->cache_reason != CACHE_USABLE)
		print_note("frame cache off: %s", reasons[attach->cache_reason]);
	if (stats->writes || attach->cache_reason == CACHE_USABLE)
		print_note("frame cache: %llu stacks copied in part, %llu of them again, whole; "
			   "%llu words written",
			   (unsigned long long)stats->cached + stats->copied_again,
			   (unsigned long long)stats->copied_again,
			   (unsigned long long)stats->writes);
}

void attach_notes_end(const struct attach *attach, enum sampler_end end)
{
	const struct sampler_stats *stats = &attach->stats;
	struct message followed = {0};

	if (attach->options.quiet)
		return;
	if (attach->nr_followed)
		message_set(&followed, "followed into %s%s; ", attach->target.command_line,
			    attach->nr_followed > 1 ? ", the last of several programs" : "");
	print_note("%s%s%llu samples of %llu ticks in %.1f s, %.2f %% lost, %llu ticks late",
		   followed.text, end_reason(attach, end), (unsigned long long)stats->samples,
		   (unsigned long long)stats->ticks, stats_wall_s(stats), loss_percent(stats),
		   (unsigned long long)stats->late_ticks);
	print_mode(attach);
	if (attach->not_followed.text[0])
		print_note("not followed: %s", attach->not_followed.text);
	if (stats->trimmed && (attach->options.verbose || trimmed_percent(stats) >= WORTH_A_NOTE))
		print_note("%.2f %% without their innermost frames, which may not have run "
			   "just then: their time is the caller's",
			   trimmed_percent(stats));
	if (profile_nr_other_samples(attach->profile))
		print_note("%llu samples are in " PROFILE_OTHER_STACKS
			   ": there was no room for more "
			   "stacks",
			   (unsigned long long)profile_nr_other_samples(attach->profile));
	if (!attach->options.verbose)
		return;
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		if (stats->lost[loss])
			print_note("lost, %s: %llu", loss_name((enum sample_loss)loss),
				   (unsigned long long)stats->lost[loss]);
	if (stats->failed_ticks)
		print_note("%llu ticks failed: the list of threads was in motion, or gone",
			   (unsigned long long)stats->failed_ticks);
	print_note("%llu reads, %llu of clocks, %llu other system calls",
		   (unsigned long long)stats->reads, (unsigned long long)stats->clock_reads,
		   (unsigned long long)stats->other_syscalls);
	if (stats->lateness.nr)
		print_note("ticks came late by %.1f µs (median), %.1f µs (99 %%), %.1f µs (most)",
			   (double)stats->p50_lateness_ns / 1e3,
			   (double)stats->p99_lateness_ns / 1e3, (double)stats->lateness.max / 1e3);
	print_cache(attach);
}

void attach_notes_begin(const struct attach *attach)
{
	const struct attach_options *options = &attach->options;

	if (options->quiet)
		return;
	print_note("sampling process %d, CPython %s%s", options->pid, attach->target.version,
		   options->duration_ns ? "" : "; Ctrl-C ends it and writes the profile");
	target_print_doubts(&attach->target);
	if (options->verbose)
		target_print_found(&attach->target);
}

void attach_explain_no_sample(const struct attach *attach, enum sampler_end end,
			      struct message *reterr)
{
	const pid_t pid = attach->options.pid;

	if (loss_total(&attach->stats))
		message_set(reterr,
			    "no stack of process %d could be proven (%llu were tried): 'pysample "
			    "doctor %d' says more",
			    pid, (unsigned long long)loss_total(&attach->stats), pid);
	else if (end == END_TARGET)
		message_set(reterr, "process %d ended before the first sample", pid);
	else if (end == END_REPLACED && attach->after == TARGET_SAME)
		message_set(reterr,
			    "the threads of process %d could not be listed: 'pysample doctor %d' "
			    "says more",
			    pid, pid);
	else if (end == END_REPLACED)
		message_set(reterr, "the interpreter of process %d ended before the first sample",
			    pid);
	else if (end == END_STOPPED)
		message_set(reterr, "stopped before the first sample");
	else
		message_set(reterr,
			    "the time was over before the first sample of process %d: give -d "
			    "more time",
			    pid);
}
