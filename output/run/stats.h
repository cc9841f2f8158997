/* SPDX-License-Identifier: MIT */
/* The counters of a run for programs: --stats-json. */
#pragma once

#include <stdio.h>

#include "output/run/run_info.h"
#include "output/text/json.h"
#include "sampler/sample.h"

/* Returns the time from the first tick to the end, with pauses; 0 if there was no tick. */
double stats_wall_s(const struct sampler_stats *stats);

/* Returns the ticks per second of a process while it was sampled; 0 if no time passed. */
double stats_achieved_hz(const struct sampler_stats *stats);

/*
 * Write one JSON object to out and flush it. Returns 0, or the stream's error as negative errno.
 * Keys are stable; unknown values are null. The keys are:
 *
 * - ticks, samples, approximate (of those), lost (an object of loss_name() → count), cached,
 *   writes, late_ticks, failed_ticks, p50_lateness_ns, p99_lateness_ns, max_lateness_ns, reads,
 *   clock_reads, clockless_threads, rough_clock_threads, other_syscalls, achieved_hz, wall_s,
 *   first_sample_ns, paused_ns, active_ns;
 * - mode (profile_mode_name()), unit (of collapsed stacks, profile_mode_unit()), shown_samples,
 *   jit_samples (of those) and shown_s (in the mode), sampled_wall_s and sampled_cpu_s (weights of
 *   all samples);
 * - native, for runs with C frames: an object of by_evidence, user_cpu_only, stacks, c_gaps,
 *   python_gaps, copies, lost_copies, without_copy, foreign_copies, refused_threads;
 * - engine, requested_hz, cpu_user_s, cpu_sys_s, max_rss_kib, command_line, pid, python,
 *   python_free_threaded, python_newer_than_tested, runtime_found_by, pysample (its version),
 *   arguments (its own), host, start_unix_ns.
 */
int stats_write_json(const struct sampler_stats *stats, const struct run_info *info, FILE *out);

/* Append the members of that object to an open object. */
void stats_append_json(struct json *json, const struct sampler_stats *stats,
		       const struct run_info *info);
