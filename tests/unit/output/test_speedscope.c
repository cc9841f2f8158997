/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/speedscope.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/processes.h"
#include "tests/support/timed_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Microseconds, at a time whose nanoseconds do not fit a double exactly. */
#define T0	(1800000000000000 * NS_PER_US)
#define AT(us)	(T0 + (us)*NS_PER_US)
#define FOR(us) ((us)*NS_PER_US)

static char *write_text(const struct artefact *artefact)
{
	size_t size;

	return artefact_text(speedscope_write, artefact, &size);
}

/* Write samples, and compare the text from "profiles" on. */
static void expect_profiles(const struct profile_options *options,
			    const struct timed_sample *samples, size_t nr, const char *expected)
{
	struct profile *profile = timed_profile(options, samples, nr);
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});
	char *profiles = strstr(text, "\"profiles\":");

	cr_assert(profiles != NULL, "%s", text);
	cr_expect(eq(str, profiles, (char *)expected));
	profile_destroy(profile);
}

static const struct timed_sample busy[] = {
	/* Another line of the same functions is the same stack. */
	{TIMED_MAIN, AT(1000), FOR(1000), 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_FIB, 11}}},
	{TIMED_MAIN, AT(2000), FOR(1000), 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_FIB, 12}}},
	{TIMED_WORKER, AT(2500), FOR(500), 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_MEMCPY, 0}}},
	{TIMED_MAIN,
	 AT(3001),
	 FOR(1001),
	 0,
	 0,
	 3,
	 {{TIMED_MODULE, 3}, {TIMED_FIB, 12}, {TIMED_FIB, 12}}},
	/* A gap of two milliseconds, then no Python frame. */
	{TIMED_MAIN, AT(6001), FOR(1000), 0, 0, 0, {{0}}},
	{TIMED_MAIN, AT(6002), FOR(1), 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_FIB, 12}}},
};

#define HEAD(name) "{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"microseconds\","
#define MAIN	   HEAD("MainThread (4242), process 4242: python3 app.py")
#define WORKER	   HEAD("worker \\\"1\\\"\\\\x0a (4250), process 4242: python3 app.py")
#define BUSY_PROFILES                                                                \
	"\"profiles\":[" MAIN "\"samples\":[[0,1],[0,1,1],[],[0,1]],"                \
	"\"weights\":[2000,1001,3000,1],\"startValue\":0,\"endValue\":6002}," WORKER \
	"\"samples\":[[],[0,2]],\"weights\":[2000,500],\"startValue\":0,\"endValue\":2500}]}\n"

Test(speedscope, merges_equal_stacks_and_writes_gaps)
{
	static const struct profile_options options = {.keep_samples = true};

	expect_profiles(&options, busy, NR(busy), BUSY_PROFILES);
}

/* The roots shift the frame numbers, but are in no stack. */
Test(speedscope, roots_of_threads_are_no_frames)
{
	static const struct profile_options options = {.keep_samples = true, .by_thread = true};

	expect_profiles(&options, busy, NR(busy),
			"\"profiles\":[" MAIN "\"samples\":[[2,3],[2,3,3],[],[2,3]],"
			"\"weights\":[2000,1001,3000,1],\"startValue\":0,\"endValue\":6002}," WORKER
			"\"samples\":[[],[2,4]],\"weights\":[2000,500],\"startValue\":0,"
			"\"endValue\":2500}]}\n");
}

/* With a row per line, another line is another stack. */
Test(speedscope, lines_are_frames_of_their_own)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};

	expect_profiles(&options, busy, 2,
			"\"profiles\":[" MAIN "\"samples\":[[0,1],[0,2]],\"weights\":[1000,1000],"
			"\"startValue\":0,\"endValue\":2000}]}\n");
}

/* The axis is CPU time, so there are no gaps. */
Test(speedscope, cpu_time_has_no_gaps)
{
	static const struct profile_options options = {
		.mode = PROFILE_CPU,
		.keep_samples = true,
	};
	static const struct timed_sample rows[] = {
		{TIMED_MAIN, AT(1000), FOR(1000), FOR(900), SAMPLE_ON_CPU, 1, {{TIMED_FIB, 0}}},
		{TIMED_MAIN, AT(2000), FOR(1000), 0, 0, 1, {{TIMED_FIB, 0}}},
		{TIMED_MAIN, AT(3000), FOR(1000), FOR(20), SAMPLE_ON_CPU, 0, {{0}}},
		{TIMED_MAIN, AT(4000), FOR(1000), FOR(7), SAMPLE_ON_CPU, 1, {{TIMED_FIB, 0}}},
	};

	expect_profiles(&options, rows, NR(rows),
			"\"profiles\":[" MAIN "\"samples\":[[0],[],[0]],\"weights\":[900,20,7],"
			"\"startValue\":0,\"endValue\":927}]}\n");
}

/* Where recordings overlap, weights are kept, and the axis is right again after the overlap. */
Test(speedscope, overlapping_samples_keep_their_weight)
{
	static const struct profile_options options = {.keep_samples = true};
	static const struct timed_sample rows[] = {
		{TIMED_MAIN, AT(1000), FOR(1000), 0, 0, 1, {{TIMED_FIB, 0}}},
		{TIMED_MAIN, AT(1500), FOR(1000), 0, 0, 1, {{TIMED_GC, 0}}},
		{TIMED_MAIN, AT(4000), FOR(1000), 0, 0, 1, {{TIMED_FIB, 0}}},
	};

	expect_profiles(&options, rows, NR(rows),
			"\"profiles\":[" MAIN
			"\"samples\":[[0],[1],[],[0]],\"weights\":[1000,1000,1000,1000],"
			"\"startValue\":0,\"endValue\":4000}]}\n");
}

Test(speedscope, unit_is_nanoseconds_if_needed)
{
	static const struct profile_options options = {.keep_samples = true};
	static const struct timed_sample rows[] = {
		{TIMED_MAIN, AT(1000), FOR(1000) - 1, 0, 0, 1, {{TIMED_FIB, 0}}},
	};

	expect_profiles(
		&options, rows, NR(rows),
		"\"profiles\":[{\"type\":\"sampled\",\"name\":\"MainThread (4242), process 4242: "
		"python3 app.py\",\"unit\":\"nanoseconds\",\"samples\":[[0]],"
		"\"weights\":[999999],\"startValue\":0,\"endValue\":999999}]}\n");
}

Test(speedscope, writes_frames_and_metadata)
{
	static const struct profile_options options = {.keep_samples = true};
	static const struct timed_sample row = {
		TIMED_WORKER,
		AT(1000),
		FOR(1000),
		0,
		0,
		4,
		{{TIMED_MODULE, 3}, {TIMED_NASTY, 0}, {TIMED_EMPTY, 8}, {TIMED_MEMCPY, 0}}};
	static const struct run run = {.info = {.target.command_line = "python3 </script>"}};
	struct profile *profile = timed_profile(&options, &row, 1);
	cleanup_free char *text =
		write_text(&(struct artefact){.profile = profile, .runs = &run, .nr_runs = 1});
	static const char *const parts[] = {
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		"\"exporter\":\"pysample@" PYSAMPLE_VERSION "\",\"name\":\"python3 </script>\","
		"\"activeProfileIndex\":0,\"pysample\":{\"runs\":[{",
		"\"command_line\":\"python3 </script>\"",
		"\"shared\":{\"frames\":[{\"name\":\"<module>\",\"file\":\"app.py\",\"line\":1},"
		"{\"name\":\"</script>;\\\"\\\\ \\u000a\\u001b[2J\\ufffd\xf0\x9f\x90\x8d\"},"
		"{\"name\":\"?\",\"file\":\"app.py\",\"line\":7},"
		"{\"name\":\"memcpy\",\"file\":\"/lib/libc.so.6\"}]}",
	};

	for (size_t i = 0; i < NR(parts); i++)
		cr_expect(strstr(text, parts[i]) != NULL, "%s\nnot in\n%s", parts[i], text);
	profile_destroy(profile);
}

/* A long command line is cut between characters. */
Test(speedscope, cuts_a_long_command_line)
{
	static const struct {
		const char *start;
		const char *shown;
	} cases[] = {
		{"", "0123456789012345678901234567890123456789012345678901234567890123"},
		{"\xe2\x82\xac", "\xe2\x82\xac"
				 "0123456789012345678901234567890123456789012345678901234567890"},
		{"01234567890123456789012345678901234567890123456789012345678901\xf0\x9f\x90\x8d",
		 "01234567890123456789012345678901234567890123456789012345678901\xf0\x9f\x90\x8d"},
	};
	static const struct profile_options options = {.keep_samples = true};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = profile_create(&options);
		struct profile_sample sample = {.time_ns = AT(1), .node = PROFILE_NONE};
		struct profile_thread thread = {.tid = 7, .name = "t"};
		cleanup_free char *text = NULL;
		char command[200];
		char expected[200];

		(void)snprintf(command, sizeof(command), "%s%s", cases[i].start,
			       "01234567890123456789012345678901234567890123456789"
			       "01234567890123456789\xe2\x82\xac");
		(void)snprintf(expected, sizeof(expected),
			       "\"name\":\"t (7), process 6: %s\xe2\x80\xa6\"", cases[i].shown);
		cr_assert(zero(int, add_process(profile, 6, command)));
		cr_assert(zero(int, profile_add_thread(profile, &thread, &sample.thread)));
		cr_assert(zero(int, profile_add(profile, PROFILE_SHOWN, &sample)));
		text = write_text(&(struct artefact){.profile = profile});
		cr_expect(strstr(text, expected) != NULL, "%s\nnot in\n%s", expected, text);
		profile_destroy(profile);
	}
}

Test(speedscope, empty_profile_is_valid)
{
	static const struct profile_options options = {.keep_samples = true};

	expect_profiles(&options, NULL, 0, "\"profiles\":[]}\n");
}

Test(speedscope, reports_a_write_error)
{
	static const struct profile_options options = {.keep_samples = true};
	struct profile *profile = timed_profile(&options, busy, NR(busy));
	const struct artefact artefact = {.profile = profile};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, speedscope_write(&artefact, out), -ENOSPC));
	(void)setvbuf(out, NULL, _IONBF, 0);
	cr_expect(eq(int, speedscope_write(&artefact, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy(profile);
}
