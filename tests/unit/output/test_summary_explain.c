/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"
#include "tests/support/summary_text.h"

#define NS_PER_MS 1000000ull

/* 2 s in all. b calls itself, and c, which calls b. */
static struct profile *new_profile(void)
{
	const struct profile_options options = {.by_line = true};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@11;b@21;b@22;c@31;b@21", 400 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "a@12;b@22;c@31", 600 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "b@21;bee", 200 * NS_PER_MS);
	add_stack(profile, PROFILE_SHOWN, "a@11", 800 * NS_PER_MS);
	return profile;
}

static char *explain(const struct profile *profile, struct artefact_options options)
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

/* The function of that name, although others have it in theirs and more time. */
Test(summary_explain, shows_callers_callees_and_lines)
{
	struct profile *profile = new_profile();
	cleanup_free char *text =
		explain(profile, (struct artefact_options){.explain = "b", .max_rows = 10});

	cr_expect(eq(str, (char *)summary_body(text, "b (app.py:20)"),
		     (char *)"b (app.py:20)\n"
			     "self 20.0%, 0.400 s · total 60.0%, 1.200 s · 3 samples\n"
			     "\n"
			     "callers\n"
			     "share%  total%  total s  function     where\n"
			     "  83.3    50.0    1.000  a            app.py:10\n"
			     "  33.3    20.0    0.400  b            app.py:20\n"
			     "  33.3    20.0    0.400  c            app.py:30\n"
			     "  16.7    10.0    0.200  [outermost]\n"
			     "\n"
			     "callees\n"
			     "share%  total%  total s  function  where\n"
			     "  83.3    50.0    1.000  c         app.py:30\n"
			     "  33.3    20.0    0.400  b         app.py:20\n"
			     "  33.3    20.0    0.400  [self]\n"
			     "  16.7    10.0    0.200  bee       app.py:20\n"
			     "\n"
			     "lines\n"
			     " self%  total%     line  source\n"
			     "  20.0    30.0       21  \n"
			     "   0.0    50.0       22  \n"
			     "no source: app.py is not here, or may not be shown\n"));
	profile_destroy(profile);
}

/* Only part of the name or place: the hottest is shown, and some others are named. */
Test(summary_explain, names_other_matches)
{
	struct profile *profile = profile_create(&(struct profile_options){.by_line = true});
	cleanup_free char *text = NULL;

	cr_assert(profile != NULL);
	for (char name[] = "xa"; name[1] < 'a' + 9; name[1]++)
		add_stack(profile, PROFILE_SHOWN, name,
			  (uint64_t)name[1]); /* the last one is hottest */
	text = explain(profile, (struct artefact_options){.explain = "x", .max_rows = 10});
	cr_expect(strstr(text, "\nxi (app.py:240)\nself ") != NULL, "%s", text);
	cr_expect(strstr(text, "\n\ntotal%  others that match\n"
			       "  11.4  xh (app.py:240)\n"
			       "  11.3  xg (app.py:240)\n"
			       "  11.2  xf (app.py:240)\n"
			       "  11.1  xe (app.py:240)\n"
			       "  11.0  xd (app.py:240)\n"
			       "     …  and 3 more\n") != NULL,
		  "%s", text);
	profile_destroy(profile);
}

Test(summary_explain, reports_that_nothing_matches)
{
	struct profile *profile = new_profile();
	cleanup_free char *text = explain(
		profile,
		(struct artefact_options){.explain = "\033x", .tree = true, .max_rows = 10});

	cr_expect(strstr(text,
			 "\n\nno function is called \"\\x1bx\", or has that in its name or path\n"
			 "\ntotal%   self%") != NULL,
		  "%s", text);
	profile_destroy(profile);
}

/* Names are compared without what is before their last dots. */
Test(summary_explain, suggests_similar_names)
{
	struct profile *profile = profile_create(&(struct profile_options){.by_line = true});
	static const char *const names[] = {"json.dumps", "Dump", "Pool.dmups"};

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "Encoder.dumps;a", 3);
	add_stack(profile, PROFILE_SHOWN, "undone", 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cleanup_free char *text = explain(
			profile, (struct artefact_options){.explain = names[i], .max_rows = 10});

		cr_expect(strstr(text, "has that in its name or path\n"
				       "\ntotal%  similar names\n"
				       "  75.0  Encoder.dumps (app.py:") != NULL,
			  "%s", text);
		cr_expect(strstr(text, "undone") == NULL, "%s", text);
	}
	profile_destroy(profile);
}

/* Machine code has no lines, and of Python's some may be unknown. */
Test(summary_explain, has_only_lines_that_are_known)
{
	struct profile *profile = profile_create(&(struct profile_options){.by_line = true});
	cleanup_free char *some = NULL, *none = NULL;

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@0;b@0", 1);
	add_stack(profile, PROFILE_SHOWN, "a@12;b@0", 1);
	some = explain(profile, (struct artefact_options){.explain = "a", .max_rows = 10});
	none = explain(profile, (struct artefact_options){.explain = "b", .max_rows = 10});
	cr_expect(strstr(some, "   0.0    50.0        ?  \n   0.0    50.0       12  \n") != NULL,
		  "%s", some);
	cr_expect(strstr(none, "\nlines\n") == NULL, "%s", none);
	profile_destroy(profile);
}

/* The first sample of a thread stands for no time. */
Test(summary_explain, knows_functions_without_time)
{
	struct profile *profile = profile_create(&(struct profile_options){.by_line = true});
	cleanup_free char *text = NULL;

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@11;b@21", 0);
	text = explain(profile, (struct artefact_options){.explain = "b", .max_rows = 10});
	cr_expect(strstr(text, "\nb (app.py:20)\nself 0.0%, ") != NULL, "%s", text);
	cr_expect(strstr(text, "  a         app.py:10\n") != NULL, "%s", text);
	cr_expect(strstr(text, "   0.0     0.0       21  \n") != NULL, "%s", text);
	profile_destroy(profile);
}

Test(summary_explain, keeps_to_the_width)
{
	struct profile *profile = new_profile();

	for (unsigned columns = 60; columns < 100; columns++) {
		cleanup_free char *text = explain(
			profile, (struct artefact_options){
					 .explain = "b", .max_rows = 10, .columns = columns});

		expect_width(text, columns);
	}
	profile_destroy(profile);
}
