/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/run/run.h"
#include "procmem/clock.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct run some = {
	.info = {.pysample = {.version = "0.1.0",
			      .arguments = "pysample attach -o a=b.pysample 7",
			      .host = "böx\n"},
		 .start_unix_ns = UINT64_C(1700000000123456789),
		 .target = {.command_line = "python3 -c 'x=1; y=2'",
			    .pid = 4711,
			    .core = "/var/cores/core.4711",
			    .death = "SIGSEGV"},
		 .python = {.version = "3.14.0",
			    .free_threaded = true,
			    .newer_than_tested = true,
			    .runtime_found_by = "debug offsets"},
		 .mode = PROFILE_GIL,
		 .account = {10, 9, 4, 8000, 7000, 6},
		 .shown_ns = 5000,
		 .engine = "racing",
		 .requested_hz = 0.1,
		 .native = {true, true, true, 31, 32, 33, 34, 35, 36, 37, 38},
		 .resources = {.cpu_user_ns = 11, .cpu_sys_ns = 12, .max_rss_kib = 13}},
	.stats = {.ticks = 1000,
		  .late_ticks = 2,
		  .failed_ticks = 3,
		  .samples = UINT64_MAX,
		  .approximate = 20,
		  .lost = {21, 22, 23, 24, 25, 26},
		  .cached = 6,
		  .writes = 8,
		  .reads = 9,
		  .clock_reads = 10,
		  .clockless = 11,
		  .rough_clocks = 12,
		  .other_syscalls = 13,
		  .start_ns = 14,
		  .first_sample_ns = 15,
		  .end_ns = 14 + (uint64_t)2 * NS_PER_S,
		  .lateness.max = 17,
		  .p50_lateness_ns = 18,
		  .p99_lateness_ns = 19},
};

/* Collects the pairs as text and in another run. */
struct collected_pairs {
	struct stored_run stored;
	char text[8192];
};

static void collect_pair(void *context, const char *name, const char *value)
{
	struct collected_pairs *collected_pairs = context;

	cr_assert(eq(int, stored_run_set(&collected_pairs->stored, name, value), 0));
	(void)snprintf(collected_pairs->text + strlen(collected_pairs->text),
		       sizeof(collected_pairs->text) - strlen(collected_pairs->text), "%s=%s\n",
		       name, value);
}

static void expect_equal(const struct run *is, const struct run *expected)
{
	const char *const *strings[][2] = {
		{&is->info.pysample.version, &expected->info.pysample.version},
		{&is->info.pysample.arguments, &expected->info.pysample.arguments},
		{&is->info.pysample.host, &expected->info.pysample.host},
		{&is->info.target.command_line, &expected->info.target.command_line},
		{&is->info.python.version, &expected->info.python.version},
		{&is->info.python.runtime_found_by, &expected->info.python.runtime_found_by},
		{&is->info.target.core, &expected->info.target.core},
		{&is->info.target.death, &expected->info.target.death},
		{&is->info.engine, &expected->info.engine},
	};
	struct run bare_is = *is, bare_expected = *expected;
	struct run *bare[] = {&bare_is, &bare_expected};

	for (size_t i = 0; i < NR(strings); i++) {
		cr_assert(eq(int, !*strings[i][0], !*strings[i][1]));
		if (*strings[i][0])
			cr_assert(eq(str, (char *)*strings[i][0], (char *)*strings[i][1]));
	}
	for (size_t i = 0; i < NR(bare); i++) {
		bare[i]->info.pysample.version = bare[i]->info.pysample.arguments =
			bare[i]->info.pysample.host = NULL;
		bare[i]->info.target.command_line = bare[i]->info.python.version = NULL;
		bare[i]->info.python.runtime_found_by = NULL;
		bare[i]->info.target.core = bare[i]->info.target.death = bare[i]->info.engine =
			NULL;
	}
	cr_assert(bare_is.info.requested_hz == bare_expected.info.requested_hz);
	cr_assert(eq(int, memcmp(&bare_is, &bare_expected, sizeof(bare_is)), 0));
}

Test(run, round_trips_through_pairs)
{
	static struct collected_pairs collected_pairs, again;

	run_for_each_pair(&some, collect_pair, &collected_pairs);
	expect_equal(&collected_pairs.stored.run, &some);
	cr_assert(strstr(collected_pairs.text, "requested_hz=0.1\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "achieved_hz=500\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "wall_s=2\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "mode=gil\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "lost.moved=21\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "\nnative.user_cpu_only=true\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "\nnative.refused_threads=38\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "samples=18446744073709551615\n") != NULL);

	run_for_each_pair(&collected_pairs.stored.run, collect_pair, &again);
	cr_assert(eq(str, again.text, collected_pairs.text));
	stored_run_done(&collected_pairs.stored);
	stored_run_done(&again.stored);
	stored_run_done(&again.stored);
}

Test(run, omits_unknown_values)
{
	static struct collected_pairs collected_pairs;
	const struct run nothing = {0};

	run_for_each_pair(&nothing, collect_pair, &collected_pairs);
	expect_equal(&collected_pairs.stored.run, &nothing);
	cr_assert(strstr(collected_pairs.text, "pid=") == NULL);
	cr_assert(strstr(collected_pairs.text, "host=") == NULL);
	cr_assert(strstr(collected_pairs.text, "\nnative=false\n") != NULL);
	cr_assert(strstr(collected_pairs.text, "native.") == NULL);
	stored_run_done(&collected_pairs.stored);
}

Test(run, last_value_of_a_name_wins)
{
	struct stored_run stored = {0};

	for (int i = 0; i < 1000; i++) {
		cr_assert(eq(int, stored_run_set(&stored, "host", "one"), 0));
		cr_assert(eq(int, stored_run_set(&stored, "python", "3.1"), 0));
		cr_assert(eq(int, stored_run_set(&stored, "ticks", "5"), 0));
	}
	cr_assert(eq(int, stored_run_set(&stored, "host", "two"), 0));
	cr_assert(eq(int, stored_run_set(&stored, "ticks", "6"), 0));
	cr_assert(eq(str, (char *)stored.run.info.pysample.host, (char *)"two"));
	cr_assert(eq(str, (char *)stored.run.info.python.version, (char *)"3.1"));
	cr_assert(eq(u64, stored.run.stats.ticks, 6));
	cr_assert(eq(u32, stored.nr_strings, 2));
	stored_run_done(&stored);
}

Test(run, ignores_invalid_values)
{
	static const char *const cases[][2] = {
		{"ticks", ""},
		{"ticks", "-1"},
		{"ticks", "1.5"},
		{"ticks", "18446744073709551616"},
		{"ticks", "0x10"},
		{"pid", "2147483648"},
		{"mode", "fast"},
		{"requested_hz", "nan"},
		{"requested_hz", "1e999"},
		{"requested_hz", "1 "},
		{"python_free_threaded", "yes"},
		{"lost.moved", "many"},
		{"lost.", "1"},
		{"lost.other", "1"},
		{"", "1"},
		{"achieved_hz", "1"},
	};
	const struct run nothing = {0};
	struct stored_run stored = {0};

	for (size_t i = 0; i < NR(cases); i++)
		cr_assert(eq(int, stored_run_set(&stored, cases[i][0], cases[i][1]), 0));
	expect_equal(&stored.run, &nothing);
	stored_run_done(&stored);
}

/* Recordings of 0.1.0 have counters that no longer exist, and two reasons of loss that do. */
Test(run, accepts_counters_of_older_versions)
{
	static const char *const gone[] = {"lost.grew", "lost.chunk", "lost.link",   "lost.slow",
					   "lost.held", "trimmed",    "copied_again"};
	struct run expected = {.stats = {.samples = 9}};
	struct stored_run stored = {0};

	expected.stats.lost[LOSS_CODE] = 3;
	expected.stats.lost[LOSS_TOO_DEEP] = 4;
	for (size_t i = 0; i < NR(gone); i++)
		cr_assert(zero(int, stored_run_set(&stored, gone[i], "77")), "%s", gone[i]);
	cr_assert(zero(int, stored_run_set(&stored, "lost.code", "3")));
	cr_assert(zero(int, stored_run_set(&stored, "lost.too_deep", "4")));
	cr_assert(zero(int, stored_run_set(&stored, "samples", "9")));
	expect_equal(&stored.run, &expected);
	stored_run_done(&stored);
}

/* Names that recordings had before they were renamed have the same effect as the current ones. */
Test(run, accepts_renamed_fields)
{
	static const char *const names[][2] = {
		{"asked_hz", "requested_hz"},
		{"native.broken", "native.c_gaps"},
		{"native.python_holed", "native.python_gaps"},
		{"native.dumps", "native.copies"},
		{"native.lost_dumps", "native.lost_copies"},
		{"native.undumped", "native.without_copy"},
		{"native.foreign_dumps", "native.foreign_copies"},
	};

	for (size_t i = 0; i < NR(names); i++) {
		struct stored_run old = {0}, current = {0}, unset = {0};

		cr_assert(zero(int, stored_run_set(&old, names[i][0], "7")));
		cr_assert(zero(int, stored_run_set(&current, names[i][1], "7")));
		cr_expect(zero(int, memcmp(&old.run, &current.run, sizeof(old.run))), "%s",
			  names[i][0]);
		cr_expect(not(zero(int, memcmp(&old.run, &unset.run, sizeof(old.run)))), "%s",
			  names[i][1]);
		stored_run_done(&old);
		stored_run_done(&current);
	}
}
