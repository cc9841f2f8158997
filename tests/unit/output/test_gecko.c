/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/gecko.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/gunzip.h"
#include "tests/support/timed_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Microseconds, at a time whose nanoseconds do not fit a double exactly. */
#define AT(us)	((1800000000000000 + (us)) * NS_PER_US)
#define FOR(us) ((us)*NS_PER_US)
#define CPU	SAMPLE_CPU_MEASURED

static char *write_text(const struct artefact *artefact)
{
	size_t size;
	char *file = artefact_text(gecko_write, artefact, &size);
	char *text;

	text = gunzip(file, size, &size);
	free(file);
	return text;
}

static void expect_parts(const char *text, const char *const *parts, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		cr_expect(strstr(text, parts[i]) != NULL, "%s\nnot in\n%s", parts[i], text);
}

static const struct timed_sample samples[] = {
	{TIMED_WORKER, AT(500), FOR(250), 0, 0, 0, {{0}}},
	{TIMED_MAIN,
	 AT(1000),
	 FOR(1000),
	 FOR(900) + 1,
	 CPU | SAMPLE_ON_CPU | SAMPLE_HOLDS_GIL,
	 2,
	 {{TIMED_MODULE, 3}, {TIMED_FIB, 11}}},
	{TIMED_MAIN,
	 AT(2000),
	 FOR(1000),
	 0,
	 CPU | SAMPLE_HOLDS_GIL | SAMPLE_GC,
	 3,
	 {{TIMED_MODULE, 3}, {TIMED_FIB, 12}, {TIMED_GC, 0}}},
	{TIMED_MAIN,
	 AT(3000),
	 FOR(1000),
	 0,
	 CPU | SAMPLE_GC,
	 3,
	 {{TIMED_MODULE, 3}, {TIMED_FIB, 12}, {TIMED_GC, 0}}},
	/* A gap of one millisecond. */
	{TIMED_MAIN,
	 AT(5000),
	 FOR(1000),
	 0,
	 CPU | SAMPLE_GC,
	 2,
	 {{TIMED_MODULE, 3}, {TIMED_MEMCPY, 0}}},
	{TIMED_MAIN,
	 AT(5001),
	 FOR(1),
	 0,
	 SAMPLE_WAITS_FOR_GIL | SAMPLE_IN_JIT,
	 1,
	 {{TIMED_NASTY, 0}}},
};

#define SHARED_FUNCTIONS                                                             \
	"\"funcTable\":{\"name\":[0,1,2,3,4,5,6],"                                   \
	"\"isJS\":[true,true,true,false,false,true,false],"                          \
	"\"relevantForJS\":[true,true,true,false,false,true,false],"                 \
	"\"resource\":[-1,-1,-1,0,-1,-1,-1],\"source\":[0,1,null,null,null,0,null]," \
	"\"lineNumber\":[1,10,null,null,null,7,null],"                               \
	"\"columnNumber\":[null,null,null,null,null,null,null],\"length\":7}"
#define SHARED_STRINGS                                                                         \
	"\"stringArray\":[\"<module>\",\"Math.fib\","                                          \
	"\"</script>;\\\"\\\\ \\u000a\\u001b[2J\\ufffd\xf0\x9f\x90\x8d\",\"memcpy\",\"<GC>\"," \
	"\"?\",\"[no python frames]\",\"app.py\",\"lib/math.py\",\"/lib/libc.so.6\",\"GC\","   \
	"\"Has GIL\",\"Waits for GIL\",\"In JIT\",\"Approximate\",\"Idle\"]"

Test(gecko, writes_shared_tables)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	static const char *const parts[] = {
		SHARED_FUNCTIONS,
		"\"func\":[0,1,1,4,3,2,6]",
		"\"line\":[3,11,12,null,null,null,null]",
		"\"category\":[0,0,0,5,3,8,9]",
		"\"stackTable\":{\"frame\":[0,1,2,3,4,5,6],\"prefix\":[null,0,0,2,0,null,null],"
		"\"length\":7}",
		"\"sources\":{\"uuid\":[null,null],\"filename\":[7,8],\"length\":2}",
		"\"resourceTable\":{\"lib\":[null],\"name\":[9],\"host\":[null],\"type\":[1],"
		"\"length\":1}",
		SHARED_STRINGS,
	};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});

	expect_parts(text, parts, NR(parts));
	profile_destroy(profile);
}

/* Roots are in the tables, but no sample refers to them. */
Test(gecko, roots_of_threads_are_no_frames)
{
	static const struct profile_options options = {
		.keep_samples = true, .by_line = true, .by_thread = true};
	static const char *const parts[] = {
		SHARED_FUNCTIONS,
		"\"stackTable\":{\"frame\":[0,1,2,3,4,5,6,7,8],"
		"\"prefix\":[null,null,null,2,2,4,2,null,null],\"length\":9}",
		"\"stack\":[3,5,5,6,7]",
		"\"stack\":[8]",
		SHARED_STRINGS,
	};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});

	expect_parts(text, parts, NR(parts));
	profile_destroy(profile);
}

Test(gecko, writes_each_thread)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});
	char *threads = strstr(text, "\"threads\":");

	cr_assert(threads != NULL, "%s", text);
	cr_expect(
		eq(str, threads,
		   (char *)"\"threads\":[{\"name\":\"MainThread\",\"isMainThread\":true,"
			   "\"processType\":\"default\",\"processName\":\"python3 app.py\","
			   "\"pid\":\"4242\",\"tid\":4242,\"processStartupTime\":0,"
			   "\"processShutdownTime\":null,\"registerTime\":0,"
			   "\"unregisterTime\":5.001,\"pausedRanges\":[],"
			   "\"showMarkersInTimeline\":true,\"samples\":{"
			   "\"weightType\":\"tracing-ms\","
			   "\"threadCPUDelta\":[900.001,0,0,0,null],"
			   "\"stack\":[1,3,3,4,5],\"time\":[1,2,3,5,5.001],"
			   "\"weight\":[1,1,1,1,0.001],\"length\":5},\"markers\":{"
			   "\"name\":[11,10,10,12,13],\"startTime\":[0,1,4,5,5],"
			   "\"endTime\":[2,3,5,5.001,5.001],\"phase\":[1,1,1,1,1],"
			   "\"category\":[8,5,5,8,4],\"data\":[{\"type\":\"Has GIL\"},"
			   "{\"type\":\"GC\"},{\"type\":\"GC\"},{\"type\":\"Waits for GIL\"},"
			   "{\"type\":\"In JIT\"}],\"length\":5}},"
			   "{\"name\":\"worker \\\"1\\\"\\\\x0a\",\"isMainThread\":false,"
			   "\"processType\":\"default\",\"processName\":\"python3 app.py\","
			   "\"pid\":\"4242\",\"tid\":4250,\"processStartupTime\":0,"
			   "\"processShutdownTime\":null,\"registerTime\":0.25,"
			   "\"unregisterTime\":0.5,\"pausedRanges\":[],"
			   "\"showMarkersInTimeline\":true,\"samples\":{"
			   "\"weightType\":\"tracing-ms\",\"threadCPUDelta\":[null],"
			   "\"stack\":[6],\"time\":[0.5],\"weight\":[0.25],\"length\":1},"
			   "\"markers\":{\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
			   "\"category\":[],\"data\":[],\"length\":0}}]}\n"));
	profile_destroy(profile);
}

Test(gecko, meta_describes_the_run)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	static const struct run runs[] = {
		{.info = {.requested_hz = 400, .target.command_line = "python3 </script>"}},
		{.info = {.target.command_line = "other"}},
	};
	static const char *const parts[] = {
		"{\"meta\":{\"preprocessedProfileVersion\":60,",
		"\"importedFrom\":\"pysample " PYSAMPLE_VERSION "\","
		"\"product\":\"python3 </script>\",\"interval\":2.5,"
		"\"startTime\":1800000000000,\"profilingStartTime\":0,"
		"\"profilingEndTime\":5.002,",
		"\"usesOnlyOneStackType\":false",
		"\"categories\":[{\"name\":\"application\",\"color\":\"yellow\","
		"\"subcategories\":[\"Other\"]},",
		"{\"name\":\"idle\",\"color\":\"transparent\",\"subcategories\":[\"Other\"]}]",
		"{\"name\":\"GC\",\"display\":[\"marker-chart\",\"marker-table\","
		"\"timeline-overview\"],\"fields\":[]}",
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		"\"threadCPUDelta\":\"\xc2\xb5s\"}",
		"\"extra\":[{\"label\":\"pysample, run 1\",\"entries\":[",
		"{\"label\":\"command_line\",\"format\":\"string\","
		"\"value\":\"python3 </script>\"}",
		"{\"label\":\"pysample, run 2\",\"entries\":[",
		"\"libs\":[],\"pages\":[],",
	};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	cleanup_free char *text = write_text(
		&(struct artefact){.profile = profile, .runs = runs, .nr_runs = NR(runs)});

	expect_parts(text, parts, NR(parts));
	profile_destroy(profile);
}

/* Without CPU times there is no column for them, which would look like idleness. */
Test(gecko, unmeasured_cpu_time_is_omitted)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	static const struct timed_sample row = {TIMED_MAIN, AT(1000), FOR(1000),	0,
						0,	    1,	      {{TIMED_FIB, 11}}};
	struct profile *profile = timed_profile(&options, &row, 1);
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});

	cr_expect(strstr(text, "\"threadCPUDelta\":[") == NULL, "%s", text);
	profile_destroy(profile);
}

Test(gecko, empty_profile_is_valid)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	struct profile *profile = timed_profile(&options, NULL, 0);
	cleanup_free char *text = write_text(&(struct artefact){.profile = profile});

	cr_expect(strstr(text, "\"threads\":[]}") != NULL, "%s", text);
	profile_destroy(profile);
}

Test(gecko, reports_a_write_error)
{
	static const struct profile_options options = {.keep_samples = true, .by_line = true};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	const struct artefact artefact = {.profile = profile};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, gecko_write(&artefact, out), -ENOSPC));
	(void)setvbuf(out, NULL, _IONBF, 0);
	cr_expect(eq(int, gecko_write(&artefact, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy(profile);
}
