/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"
#include "tests/support/summary_text.h"

#define NS_PER_MS 1000000ull

/* 2 s in all. b calls itself, and c, which calls b. */
static struct profile *new_profile(bool by_line)
{
	const struct profile_options options = {.by_line = by_line};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@11;b@21;b@22;c@31;b@21", 400 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "a@12;b@22;c@31", 600 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "b@21;bee", 200 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "a@11", 800 * NS_PER_MS);
	return profile;
}

static char *write_calls(const struct profile *profile, struct artefact_options options)
{
	const struct run run = {.info = {.target.pid = 1}};
	const struct artefact artefact = {
		.profile = profile,
		.runs = &run,
		.nr_runs = 1,
		.options = options,
	};

	return summary_text(&artefact);
}

/* Callers are functions, with or without a row per line. */
Test(summary_calls, lists_callers)
{
	for (int by_line = 0; by_line < 2; by_line++) {
		struct profile *profile = new_profile(by_line);
		cleanup_free char *text = write_calls(
			profile, (struct artefact_options){.callers = "b (", .max_rows = 10});

		cr_expect(eq(str, (char *)summary_body(text, "callers of"),
			     (char *)"callers of b (app.py:20)\n"
				     "total 60.0%, 1.200 s · self 20.0%, 0.400 s\n"
				     "share%  total%  total s  function     where\n"
				     "  83.3    50.0    1.000  a            app.py:10\n"
				     "  33.3    20.0    0.400  b            app.py:20\n"
				     "  33.3    20.0    0.400  c            app.py:30\n"
				     "  16.7    10.0    0.200  [outermost]\n"));
		profile_destroy(profile);
	}
}

Test(summary_calls, lists_callees)
{
	for (int by_line = 0; by_line < 2; by_line++) {
		struct profile *profile = new_profile(by_line);
		cleanup_free char *text = write_calls(
			profile, (struct artefact_options){.callees = "b (", .max_rows = 10});

		cr_expect(eq(str, (char *)summary_body(text, "callees of"),
			     (char *)"callees of b (app.py:20)\n"
				     "total 60.0%, 1.200 s · self 20.0%, 0.400 s\n"
				     "share%  total%  total s  function  where\n"
				     "  83.3    50.0    1.000  c         app.py:30\n"
				     "  33.3    20.0    0.400  b         app.py:20\n"
				     "  33.3    20.0    0.400  [self]\n"
				     "  16.7    10.0    0.200  bee       app.py:20\n"));
		profile_destroy(profile);
	}
}

/* Each matching function has its own table, hottest first. */
Test(summary_calls, each_match_has_its_own_table)
{
	struct profile *profile = new_profile(false);
	cleanup_free char *text =
		write_calls(profile, (struct artefact_options){.callers = "b", .max_rows = 2});
	const char *first = summary_body(text, "callers of b (app.py:20)\n");
	const char *more = summary_body(first, "     …  and 2 more\n");
	const char *second = summary_body(more, "\n\ncallers of bee (app.py:20)\n");

	cr_expect(strstr(second, "\n 100.0    10.0    0.200  b         app.py:20\n") != NULL, "%s",
		  second);
	profile_destroy(profile);
}

Test(summary_calls, number_of_tables_is_limited)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);
	cleanup_free char *text = NULL;

	cr_assert(profile != NULL);
	for (char name[] = "xa"; name[1] < 'a' + 13; name[1]++)
		add_stack(profile, PROFILE_SHOWN, name,
			  (uint64_t)name[1]); /* the last one is hottest */
	text = write_calls(profile, (struct artefact_options){.callers = "x", .max_rows = 2});
	cr_expect(strstr(text, "callers of xd (app.py:240)\n") != NULL, "%s", text);
	cr_expect(strstr(text, "callers of xc (app.py:240)\n") == NULL, "%s", text);
	cr_expect(strstr(text, "\n\n… and 3 more functions\n") != NULL, "%s", text);
	profile_destroy(profile);
}

Test(summary_calls, reports_that_nothing_matches)
{
	struct profile *profile = new_profile(false);
	cleanup_free char *text = write_calls(profile, (struct artefact_options){.callers = "\033x",
										 .callees = "yy",
										 .tree = true,
										 .max_rows = 10});

	cr_expect(strstr(text, "\n\nno function label contains \"\\x1bx\"\n"
			       "\nno function label contains \"yy\"\n"
			       "\ntotal%   self%") != NULL,
		  "%s", text);
	profile_destroy(profile);
}

Test(summary_calls, keeps_to_the_width)
{
	struct profile *profile = new_profile(false);

	for (unsigned columns = 60; columns < 100; columns++) {
		cleanup_free char *text = write_calls(
			profile, (struct artefact_options){
					 .callees = "b", .max_rows = 10, .columns = columns});

		expect_width(text, columns);
	}
	profile_destroy(profile);
}
