/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/run/loss.h"
#include "output/run/stats.h"

static const struct sampler_stats some = {
	.ticks = 1000,
	.cached = 2000,
	.writes = 3,
	.late_ticks = 2,
	.samples = 2994,
	.approximate = 6,
	.lost = {[LOSS_MOVED] = 1, [LOSS_LATE] = 2, [LOSS_UNFINISHED] = 3},
	.reads = 1100,
	.other_syscalls = 1050,
	.start_ns = 5000000000,
	.first_sample_ns = 5000123456,
	.clock_reads = 77,
	.clockless = 4,
	.rough_clocks = 3,
	.end_ns = 6250000000,
	.active_ns = 1000000000,
	.failed_ticks = 3,
	.lateness.max = 12345,
	.p50_lateness_ns = 1234,
	.p99_lateness_ns = 11263,
};

static void expect_json(const struct sampler_stats *stats, const struct run_info *info,
			const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL);
	cr_expect(eq(int, stats_write_json(stats, info, out), 0));
	cr_assert(eq(int, fclose(out), 0));
	cr_expect(eq(str, text, (char *)expected));
	free(text);
}

Test(stats, writes_every_value)
{
	const struct run_info info = {
		.target.command_line = "python3 \"a\".py",
		.target.pid = 42,
		.python.version = "3.12.1",
		.python.free_threaded = true,
		.python.newer_than_tested = true,
		.python.runtime_found_by = "section",
		.pysample.version = "1.2.3",
		.pysample.arguments = "pysample attach 42",
		.pysample.host = "here",
		.start_unix_ns = 1700000000000000001,
		.mode = PROFILE_CPU,
		.account = {.nr_shown = 7,
			    .nr_in_jit = 5,
			    .nr_idle = 2,
			    .idle_ns = 500000000,
			    .nr_idle_threads = 1,
			    .wall_ns = 2500000000,
			    .cpu_ns = 1250000000,
			    .nr_cpu_measured = 9},
		.shown_ns = 1125000000,
		.engine = "racing",
		.requested_hz = 1000,
		.native = {true, true, true, 31, 32, 33, 34, 35, 36, 37, 38},
		.resources.cpu_user_ns = 1500000000,
		.resources.cpu_sys_ns = 250000000,
		.resources.max_rss_kib = 2048,
	};

	expect_json(&some, &info,
		    "{\n"
		    "  \"ticks\": 1000,\n"
		    "  \"samples\": 2994,\n"
		    "  \"approximate\": 6,\n"
		    "  \"lost\": {\n"
		    "    \"moved\": 1,\n"
		    "    \"lock\": 0,\n"
		    "    \"late\": 2,\n"
		    "    \"unfinished\": 3,\n"
		    "    \"code\": 0,\n"
		    "    \"fault\": 0,\n"
		    "    \"skipped\": 0,\n"
		    "    \"too_deep\": 0\n"
		    "  },\n"
		    "  \"cached\": 2000,\n"
		    "  \"writes\": 3,\n"
		    "  \"late_ticks\": 2,\n"
		    "  \"failed_ticks\": 3,\n"
		    "  \"p50_lateness_ns\": 1234,\n"
		    "  \"p99_lateness_ns\": 11263,\n"
		    "  \"max_lateness_ns\": 12345,\n"
		    "  \"reads\": 1100,\n"
		    "  \"clock_reads\": 77,\n"
		    "  \"clockless_threads\": 4,\n"
		    "  \"rough_clock_threads\": 3,\n"
		    "  \"other_syscalls\": 1050,\n"
		    "  \"achieved_hz\": 1000,\n"
		    "  \"wall_s\": 1.25,\n"
		    "  \"first_sample_ns\": 5000123456,\n"
		    "  \"paused_ns\": 0,\n"
		    "  \"active_ns\": 1000000000,\n"
		    "  \"mode\": \"cpu\",\n"
		    "  \"unit\": \"microseconds\",\n"
		    "  \"shown_samples\": 7,\n"
		    "  \"jit_samples\": 5,\n"
		    "  \"idle_samples\": 2,\n"
		    "  \"idle_s\": 0.5,\n"
		    "  \"idle_threads\": 1,\n"
		    "  \"shown_s\": 1.125,\n"
		    "  \"sampled_wall_s\": 2.5,\n"
		    "  \"sampled_cpu_s\": 1.25,\n"
		    "  \"native\": {\n"
		    "    \"by_evidence\": true,\n"
		    "    \"user_cpu_only\": true,\n"
		    "    \"stacks\": 31,\n"
		    "    \"c_gaps\": 32,\n"
		    "    \"python_gaps\": 33,\n"
		    "    \"copies\": 34,\n"
		    "    \"lost_copies\": 35,\n"
		    "    \"without_copy\": 36,\n"
		    "    \"foreign_copies\": 37,\n"
		    "    \"refused_threads\": 38\n"
		    "  },\n"
		    "  \"engine\": \"racing\",\n"
		    "  \"requested_hz\": 1000,\n"
		    "  \"cpu_user_s\": 1.5,\n"
		    "  \"cpu_sys_s\": 0.25,\n"
		    "  \"max_rss_kib\": 2048,\n"
		    "  \"command_line\": \"python3 \\\"a\\\".py\",\n"
		    "  \"pid\": 42,\n"
		    "  \"python\": \"3.12.1\",\n"
		    "  \"python_free_threaded\": true,\n"
		    "  \"python_newer_than_tested\": true,\n"
		    "  \"runtime_found_by\": \"section\",\n"
		    "  \"pysample\": \"1.2.3\",\n"
		    "  \"arguments\": \"pysample attach 42\",\n"
		    "  \"host\": \"here\",\n"
		    "  \"start_unix_ns\": 1700000000000000001\n"
		    "}\n");
}

Test(stats, unknown_values_are_null)
{
	const struct sampler_stats none = {0};
	const struct run_info info = {0};

	expect_json(&none, &info,
		    "{\n"
		    "  \"ticks\": 0,\n"
		    "  \"samples\": 0,\n"
		    "  \"approximate\": 0,\n"
		    "  \"lost\": {\n"
		    "    \"moved\": 0,\n"
		    "    \"lock\": 0,\n"
		    "    \"late\": 0,\n"
		    "    \"unfinished\": 0,\n"
		    "    \"code\": 0,\n"
		    "    \"fault\": 0,\n"
		    "    \"skipped\": 0,\n"
		    "    \"too_deep\": 0\n"
		    "  },\n"
		    "  \"cached\": 0,\n"
		    "  \"writes\": 0,\n"
		    "  \"late_ticks\": 0,\n"
		    "  \"failed_ticks\": 0,\n"
		    "  \"p50_lateness_ns\": 0,\n"
		    "  \"p99_lateness_ns\": 0,\n"
		    "  \"max_lateness_ns\": 0,\n"
		    "  \"reads\": 0,\n"
		    "  \"clock_reads\": 0,\n"
		    "  \"clockless_threads\": 0,\n"
		    "  \"rough_clock_threads\": 0,\n"
		    "  \"other_syscalls\": 0,\n"
		    "  \"achieved_hz\": 0,\n"
		    "  \"wall_s\": 0,\n"
		    "  \"first_sample_ns\": 0,\n"
		    "  \"paused_ns\": 0,\n"
		    "  \"active_ns\": 0,\n"
		    "  \"mode\": \"wall\",\n"
		    "  \"unit\": \"samples\",\n"
		    "  \"shown_samples\": 0,\n"
		    "  \"jit_samples\": 0,\n"
		    "  \"idle_samples\": 0,\n"
		    "  \"idle_s\": 0,\n"
		    "  \"idle_threads\": 0,\n"
		    "  \"shown_s\": 0,\n"
		    "  \"sampled_wall_s\": 0,\n"
		    "  \"sampled_cpu_s\": null,\n"
		    "  \"native\": null,\n"
		    "  \"engine\": null,\n"
		    "  \"requested_hz\": null,\n"
		    "  \"cpu_user_s\": 0,\n"
		    "  \"cpu_sys_s\": 0,\n"
		    "  \"max_rss_kib\": 0,\n"
		    "  \"command_line\": null,\n"
		    "  \"pid\": null,\n"
		    "  \"python\": null,\n"
		    "  \"python_free_threaded\": false,\n"
		    "  \"python_newer_than_tested\": false,\n"
		    "  \"runtime_found_by\": null,\n"
		    "  \"pysample\": null,\n"
		    "  \"arguments\": null,\n"
		    "  \"host\": null,\n"
		    "  \"start_unix_ns\": null\n"
		    "}\n");
}

Test(stats, computes_losses_and_rates)
{
	const struct sampler_stats none = {0};
	const struct sampler_stats backwards = {.ticks = 1, .start_ns = 2, .end_ns = 1};

	cr_expect(eq(u64, loss_total(&some), 6));
	cr_expect(epsilon_eq(dbl, loss_percent(&some), 0.2, 1e-12));
	cr_expect(loss_percent(&none) == 0);
	cr_expect(stats_wall_s(&backwards) == 0);
	cr_expect(stats_achieved_hz(&backwards) == 0);
}
