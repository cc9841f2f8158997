/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/callgrind.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/stack_profile.h"

static const struct run run = {.info = {.pysample.version = "1.2",
					.target.command_line = "python3 a\nb.py",
					.target.pid = 42,
					.python.version = "3.12.1"}};

static struct profile *new_profile(enum profile_mode mode)
{
	const struct profile_options options = {.by_line = true, .mode = mode};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

static char *write_text(const struct profile *profile, uint32_t nr_runs)
{
	const struct run runs[] = {run, run};
	const struct artefact artefact = {.profile = profile, .runs = runs, .nr_runs = nr_runs};
	size_t size;

	return artefact_text(callgrind_write, &artefact, &size);
}

/* The text after the header. */
static const char *body(const char *text)
{
	const char *events = strstr(text, "\nevents: ");

	cr_assert(events != NULL, "%s", text);
	return strchr(events + 1, '\n') + 1;
}

Test(callgrind, header_describes_the_run)
{
	struct profile *profile = new_profile(PROFILE_CPU);
	cleanup_free char *text = write_text(profile, 1);
	cleanup_free char *two = write_text(profile, 2);

	cr_expect(strstr(text, "# callgrind format\nversion: 1\ncreator: pysample 1.2\npid: 42\n"
			       "cmd: python3 a\\x0ab.py\ndesc: ") == text,
		  "%s", text);
	cr_expect(strstr(text, "\ndesc: python: 3.12.1\n") != NULL, "%s", text);
	cr_expect(strstr(text, "\ndesc: command_line: python3 a\\x0ab.py\n") != NULL, "%s", text);
	cr_expect(strstr(text, "\npositions: line\nevent: samples : samples\n"
			       "event: cpu_ns : nanoseconds of CPU time\n"
			       "events: samples cpu_ns\n\nfl=(1) ???\nfn=(1) [all]\n\n"
			       "totals: 0 0\n") != NULL,
		  "%s", text);
	cr_expect(strstr(text, "desc: run:") == NULL, "%s", text);
	cr_expect(strstr(two, "\ndesc: run: 1\n") != NULL, "%s", two);
	cr_expect(strstr(two, "\ndesc: run: 2\n") != NULL, "%s", two);
	profile_destroy(profile);
}

/* a calls itself, and b, which calls a again. No sum may exceed the total of 16 ns. */
Test(callgrind, recursive_calls_do_not_exceed_the_total)
{
	struct profile *profile = new_profile(PROFILE_WALL);
	cleanup_free char *text = NULL;

	add_stack(profile, PROFILE_SHOWN, "a@11;a@12;b@21;a@13;c@31", 10);
	add_stack(profile, PROFILE_SHOWN, "a@11;a@12;b@21", 3);
	add_stack(profile, PROFILE_SHOWN, "b@21", 2);
	add_stack(profile, PROFILE_SHOWN, "", 1);
	text = write_text(profile, 1);
	cr_expect(eq(str, (char *)body(text),
		     (char *)"\nfl=(1) ???\nfn=(4) [all]\n"
			     "cfi=(2) app.py\ncfn=(1) a\ncalls=2 10\n0 2 13\n"
			     "cfi=(2)\ncfn=(2) b\ncalls=1 20\n0 1 2\n"
			     "cfi=(1)\ncfn=(5) [no python frames]\ncalls=1 0\n0 1 1\n"
			     "\nfl=(1)\nfn=(5)\n0 1 1\n"
			     "\nfl=(2)\nfn=(1)\n"
			     "cfi=(2)\ncfn=(2)\ncalls=2 20\n12 2 13\n"
			     "cfi=(2)\ncfn=(3) c\ncalls=1 30\n13 1 10\n"
			     "\nfl=(2)\nfn=(2)\n"
			     "21 2 5\n"
			     "cfi=(2)\ncfn=(1)\ncalls=1 10\n21 0 0\n"
			     "\nfl=(2)\nfn=(3)\n31 1 10\n"
			     "\ntotals: 4 16\n"));
	profile_destroy(profile);
}

/* Stacks of one function each, several of them alike except for one field. */
Test(callgrind, distinguishes_equal_names)
{
	static const struct function functions[] = {
		{0, 7, "<lambda>", "app.py", FUNCTION_PYTHON},
		{0, 9, "<lambda>", "app.py", FUNCTION_PYTHON},
		{0, 7, "<lambda>", "other.py", FUNCTION_PYTHON},
		{0, 0, "<GC>", "", FUNCTION_COLLECTOR},
		{0, 0, "memcpy", "/lib/libc.so", FUNCTION_NATIVE},
		{0, 0, "memcpy", "/lib/b.so", FUNCTION_NATIVE},
		{0, -5, "jitted", "<jit>", FUNCTION_JIT},
		{0, 1, "", "x\ny", FUNCTION_PYTHON},
	};
	struct profile *profile = new_profile(PROFILE_WALL);
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		struct profile_sample sample = {.wall_ns = 1, .thread = PROFILE_NONE};
		uint32_t function;

		cr_assert(eq(int, profile_get_function(profile, &functions[i], &function), 0));
		cr_assert(eq(int,
			     profile_get_node(profile, PROFILE_NONE, function,
					      functions[i].first_line, &sample.node),
			     0));
		cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	}
	text = write_text(profile, 1);
	cr_expect(eq(str, (char *)body(text),
		     (char *)"\nob=(4) [python]\nfl=(2) ???\nfn=(9) [all]\n"
			     "cob=(4)\ncfi=(3) app.py\ncfn=(1) <lambda>:7\ncalls=1 7\n0 1 1\n"
			     "cob=(4)\ncfi=(3)\ncfn=(2) <lambda>:9\ncalls=1 9\n0 1 1\n"
			     "cob=(4)\ncfi=(4) other.py\ncfn=(3) <lambda>\ncalls=1 7\n0 1 1\n"
			     "cob=(4)\ncfi=(2)\ncfn=(4) <GC>\ncalls=1 0\n0 1 1\n"
			     "cob=(2) /lib/libc.so\ncfi=(2)\ncfn=(5) memcpy (/lib/libc.so)\n"
			     "calls=1 0\n0 1 1\n"
			     "cob=(1) /lib/b.so\ncfi=(2)\ncfn=(6) memcpy (/lib/b.so)\n"
			     "calls=1 0\n0 1 1\n"
			     "cob=(3) [jit]\ncfi=(1) <jit>\ncfn=(7) jitted\ncalls=1 0\n0 1 1\n"
			     "cob=(4)\ncfi=(5) x\\x0ay\ncfn=(8) ?\ncalls=1 1\n0 1 1\n"
			     "\nob=(4)\nfl=(3)\nfn=(1)\n7 1 1\n"
			     "\nob=(4)\nfl=(3)\nfn=(2)\n9 1 1\n"
			     "\nob=(4)\nfl=(4)\nfn=(3)\n7 1 1\n"
			     "\nob=(4)\nfl=(2)\nfn=(4)\n0 1 1\n"
			     "\nob=(2)\nfl=(2)\nfn=(5)\n0 1 1\n"
			     "\nob=(1)\nfl=(2)\nfn=(6)\n0 1 1\n"
			     "\nob=(3)\nfl=(1)\nfn=(7)\n0 1 1\n"
			     "\nob=(4)\nfl=(5)\nfn=(8)\n1 1 1\n"
			     "\ntotals: 8 8\n"));
	profile_destroy(profile);
}

/* With a row per line a function has several rows. Deep stacks are fine. */
Test(callgrind, writes_very_deep_stacks)
{
	struct profile *profile = new_profile(PROFILE_WALL);
	const struct function function = {0, 1, "f", "app.py", FUNCTION_PYTHON};
	struct profile_sample sample = {
		.wall_ns = 1,
		.thread = PROFILE_NONE,
		.node = PROFILE_NONE,
	};
	cleanup_free char *text = NULL;
	uint32_t index;

	cr_assert(eq(int, profile_get_function(profile, &function, &index), 0));
	for (int32_t i = 0; i < 500000; i++) {
		cr_assert(eq(int,
			     profile_get_node(profile, sample.node, index, 1 + i % 3, &sample.node),
			     0));
		cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	}
	text = write_text(profile, 1);
	cr_expect(eq(str, (char *)body(text),
		     (char *)"\nfl=(1) ???\nfn=(2) [all]\n"
			     "cfi=(2) app.py\ncfn=(1) f\ncalls=500000 1\n0 500000 500000\n"
			     "\nfl=(2)\nfn=(1)\n1 166667 166667\n2 166667 166667\n"
			     "3 166666 166666\n"
			     "\ntotals: 500000 500000\n"));
	profile_destroy(profile);
}

Test(callgrind, reports_a_write_error)
{
	const struct artefact artefact = {
		.profile = new_profile(PROFILE_WALL),
		.runs = &run,
		.nr_runs = 1,
	};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, callgrind_write(&artefact, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy((struct profile *)artefact.profile);
}
