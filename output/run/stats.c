/* SPDX-License-Identifier: MIT */
#include "output/run/stats.h"

#include "output/run/loss.h"
#include "output/text/json.h"
#include "procmem/clock.h"

double stats_wall_s(const struct sampler_stats *stats)
{
	if (stats->end_ns <= stats->start_ns)
		return 0;
	return (double)(stats->end_ns - stats->start_ns) / NS_PER_S;
}

double stats_achieved_hz(const struct sampler_stats *stats)
{
	/* Recordings of earlier versions do not have it. */
	const uint64_t active_ns = stats->active_ns ? stats->active_ns
				   : stats->end_ns > stats->start_ns
					   ? stats->end_ns - stats->start_ns - stats->paused_ns
					   : 0;

	return active_ns ? (double)stats->ticks * NS_PER_S / (double)active_ns : 0;
}

static void write_counters(struct json *json, const struct sampler_stats *stats)
{
	json_member_u64(json, "ticks", stats->ticks);
	json_member_u64(json, "samples", stats->samples);
	json_member_u64(json, "approximate", stats->approximate);
	json_key(json, "lost");
	json_object_begin(json);
	for (int i = 0; i < NR_SAMPLE_LOSSES; i++)
		json_member_u64(json, loss_name((enum sample_loss)i), stats->lost[i]);
	json_object_end(json);
	json_member_u64(json, "cached", stats->cached);
	json_member_u64(json, "writes", stats->writes);
	json_member_u64(json, "late_ticks", stats->late_ticks);
	json_member_u64(json, "failed_ticks", stats->failed_ticks);
	json_member_u64(json, "p50_lateness_ns", stats->p50_lateness_ns);
	json_member_u64(json, "p99_lateness_ns", stats->p99_lateness_ns);
	json_member_u64(json, "max_lateness_ns", stats->lateness.max);
	json_member_u64(json, "reads", stats->reads);
	json_member_u64(json, "clock_reads", stats->clock_reads);
	json_member_u64(json, "clockless_threads", stats->clockless);
	json_member_u64(json, "rough_clock_threads", stats->rough_clocks);
	json_member_u64(json, "other_syscalls", stats->other_syscalls);
	json_member_double(json, "achieved_hz", stats_achieved_hz(stats));
	json_member_double(json, "wall_s", stats_wall_s(stats));
	json_member_u64(json, "first_sample_ns", stats->first_sample_ns);
	json_member_u64(json, "paused_ns", stats->paused_ns);
	json_member_u64(json, "active_ns", stats->active_ns);
}

/* The mode with its totals, and the weights of all samples. */
static void write_account(struct json *json, const struct run_info *info)
{
	json_member_string(json, "mode", profile_mode_name(info->mode));
	json_member_string(json, "unit", profile_mode_unit(info->mode));
	json_member_u64(json, "shown_samples", info->account.nr_shown);
	json_member_u64(json, "jit_samples", info->account.nr_in_jit);
	json_member_u64(json, "idle_samples", info->account.nr_idle);
	json_member_double(json, "idle_s", (double)info->account.idle_ns / NS_PER_S);
	json_member_u64(json, "idle_threads", info->account.nr_idle_threads);
	json_member_double(json, "shown_s", (double)info->shown_ns / NS_PER_S);
	json_member_double(json, "sampled_wall_s", (double)info->account.wall_ns / NS_PER_S);
	json_key(json, "sampled_cpu_s");
	if (info->account.nr_cpu_measured)
		json_double(json, (double)info->account.cpu_ns / NS_PER_S);
	else
		json_null(json);
}

static void write_native(struct json *json, const struct run_native *native)
{
	json_key(json, "native");
	if (!native->is_on) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_member_bool(json, "by_evidence", native->is_inferred);
	json_member_bool(json, "user_cpu_only", native->user_cpu_only);
	json_member_u64(json, "stacks", native->nr_stacks);
	json_member_u64(json, "c_gaps", native->nr_c_gaps);
	json_member_u64(json, "python_gaps", native->nr_python_gaps);
	json_member_u64(json, "copies", native->nr_copies);
	json_member_u64(json, "lost_copies", native->nr_lost_copies);
	json_member_u64(json, "without_copy", native->nr_without_copy);
	json_member_u64(json, "foreign_copies", native->nr_foreign_copies);
	json_member_u64(json, "refused_threads", native->nr_refused);
	json_object_end(json);
}

static void write_info(struct json *json, const struct run_info *info)
{
	json_member_string(json, "engine", info->engine);
	json_key(json, "requested_hz");
	if (info->requested_hz > 0)
		json_double(json, info->requested_hz);
	else
		json_null(json);
	json_member_double(json, "cpu_user_s", (double)info->resources.cpu_user_ns / NS_PER_S);
	json_member_double(json, "cpu_sys_s", (double)info->resources.cpu_sys_ns / NS_PER_S);
	json_member_u64(json, "max_rss_kib", info->resources.max_rss_kib);
	json_member_string(json, "command_line", info->target.command_line);
	json_member_known(json, "pid", (uint64_t)info->target.pid);
	json_member_string(json, "python", info->python.version);
	json_member_bool(json, "python_free_threaded", info->python.free_threaded);
	json_member_bool(json, "python_newer_than_tested", info->python.newer_than_tested);
	json_member_string(json, "runtime_found_by", info->python.runtime_found_by);
	json_member_string(json, "pysample", info->pysample.version);
	json_member_string(json, "arguments", info->pysample.arguments);
	json_member_string(json, "host", info->pysample.host);
	json_member_known(json, "start_unix_ns", info->start_unix_ns);
}

void stats_append_json(struct json *json, const struct sampler_stats *stats,
		       const struct run_info *info)
{
	write_counters(json, stats);
	write_account(json, info);
	write_native(json, &info->native);
	write_info(json, info);
}

int stats_write_json(const struct sampler_stats *stats, const struct run_info *info, FILE *out)
{
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	stats_append_json(&json, stats, info);
	json_object_end(&json);
	return json_finish(&json);
}
