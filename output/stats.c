/* SPDX-License-Identifier: MIT */
#include "output/stats.h"

#include "output/json.h"
#include "output/loss.h"

double stats_wall_s(const struct sampler_stats *stats)
{
	if (stats->end_ns <= stats->start_ns)
		return 0;
	return (double)(stats->end_ns - stats->start_ns) / NS_PER_S;
}

double stats_achieved_hz(const struct sampler_stats *stats)
{
	double wall_s = stats_wall_s(stats);

	return wall_s > 0 ? (double)stats->ticks / wall_s : 0;
}

static void member_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

static void member_double(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

static void member_string(struct json *json, const char *key, const char *value)
{
	json_key(json, key);
	json_string(json, value);
}

static void write_counters(struct json *json, const struct sampler_stats *stats)
{
	member_u64(json, "ticks", stats->ticks);
	member_u64(json, "samples", stats->samples);
	json_key(json, "lost");
	json_object_begin(json);
	for (int i = 0; i < NR_SAMPLE_LOSSES; i++)
		member_u64(json, loss_name((enum sample_loss)i), stats->lost[i]);
	json_object_end(json);
	member_u64(json, "trimmed", stats->trimmed);
	member_u64(json, "cached", stats->cached);
	member_u64(json, "copied_again", stats->copied_again);
	member_u64(json, "writes", stats->writes);
	member_u64(json, "late_ticks", stats->late_ticks);
	member_u64(json, "failed_ticks", stats->failed_ticks);
	member_u64(json, "p50_lateness_ns", stats->p50_lateness_ns);
	member_u64(json, "p99_lateness_ns", stats->p99_lateness_ns);
	member_u64(json, "max_lateness_ns", stats->lateness.max);
	member_u64(json, "reads", stats->reads);
	member_u64(json, "clock_reads", stats->clock_reads);
	member_u64(json, "clockless_threads", stats->clockless);
	member_u64(json, "rough_clock_threads", stats->rough_clocks);
	member_u64(json, "other_syscalls", stats->other_syscalls);
	member_double(json, "achieved_hz", stats_achieved_hz(stats));
	member_double(json, "wall_s", stats_wall_s(stats));
	member_u64(json, "first_sample_ns", stats->first_sample_ns);
}

/* What the profile shows, and the weights of all samples. */
static void write_account(struct json *json, const struct run_info *info)
{
	member_string(json, "mode", profile_mode_name(info->mode));
	member_string(json, "unit", profile_mode_unit(info->mode));
	member_u64(json, "shown_samples", info->account.nr_shown);
	member_double(json, "shown_s", (double)info->shown_ns / NS_PER_S);
	member_double(json, "sampled_wall_s", (double)info->account.wall_ns / NS_PER_S);
	json_key(json, "sampled_cpu_s");
	if (info->account.nr_cpu_measured)
		json_double(json, (double)info->account.cpu_ns / NS_PER_S);
	else
		json_null(json);
}

static void write_info(struct json *json, const struct run_info *info)
{
	json_key(json, "asked_hz");
	if (info->asked_hz > 0)
		json_double(json, info->asked_hz);
	else
		json_null(json);
	member_double(json, "cpu_user_s", (double)info->cpu_user_ns / NS_PER_S);
	member_double(json, "cpu_sys_s", (double)info->cpu_sys_ns / NS_PER_S);
	member_u64(json, "max_rss_kib", info->max_rss_kib);
	member_string(json, "command_line", info->command_line);
	json_key(json, "pid");
	if (info->pid)
		json_i64(json, info->pid);
	else
		json_null(json);
	member_string(json, "python", info->python);
	json_key(json, "python_free_threaded");
	json_bool(json, info->python_free_threaded);
	json_key(json, "python_newer_than_tested");
	json_bool(json, info->python_newer_than_tested);
	member_string(json, "runtime_found_by", info->runtime_found_by);
	member_string(json, "pysample", info->pysample);
	member_string(json, "arguments", info->arguments);
	member_string(json, "host", info->host);
	json_key(json, "start_unix_ns");
	if (info->start_unix_ns)
		json_u64(json, info->start_unix_ns);
	else
		json_null(json);
}

void stats_append_json(struct json *json, const struct sampler_stats *stats,
		       const struct run_info *info)
{
	write_counters(json, stats);
	write_account(json, info);
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
