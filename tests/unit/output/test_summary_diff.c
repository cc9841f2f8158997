/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"
#include "tests/support/summary_text.h"

#define NS_PER_MS 1000000ull

static void add(struct profile *profile, enum profile_side side, const char *stack, unsigned ms)
{
	add_stack(profile, side, stack, ms * NS_PER_MS);
}

/* 1 s now, 2 s in the base. */
static struct profile *new_profile(void)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	add(profile, PROFILE_SHOWN, "a", 300);
	add(profile, PROFILE_SHOWN, "a;b", 500);
	add(profile, PROFILE_SHOWN, "a;d;b", 100);
	add(profile, PROFILE_SHOWN, "", 100);
	add(profile, PROFILE_BASE, "a", 600);
	add(profile, PROFILE_BASE, "a;b", 800);
	add(profile, PROFILE_BASE, "a;c", 600);
	return profile;
}

static char *write_diff(const struct profile *profile, struct artefact_options options)
{
	const struct run run = {.info = {.target.pid = 1, .target.command_line = "now"},
				.stats = {.samples = 4}};
	const struct run before = {.info = {.target.pid = 2, .target.command_line = "before"},
				   .stats = {.samples = 5}};
	const struct artefact artefact = {
		.profile = profile,
		.has_base = true,
		.runs = &run,
		.nr_runs = 1,
		.base_runs = &before,
		.nr_base_runs = 1,
		.options = options,
	};

	return summary_text(&artefact);
}

Test(summary_diff, lists_changes)
{
	struct profile *profile = new_profile();
	cleanup_free char *text = write_diff(profile, (struct artefact_options){.max_rows = 10});

	cr_expect(eq(
		str, text,
		(char *)"now\n"
			"pid 1 · 0.0 s · wall time\n"
			"0 Hz · 4 samples · 0% lost · 0 late ticks\n"
			"\n"
			"compared with\n"
			"before\n"
			"pid 2 · 0.0 s · wall time\n"
			"0 Hz · 5 samples · 0% lost · 0 late ticks\n"
			"\n"
			"shown: 4 samples · 1.000 s, compared with 3 of 5 samples · 2.000 s of "
			"wall time\n"
			"\n"
			" self%  before    diff  total%  before    diff   self s   before  total s"
			"   before        function            where\n"
			"   0.0    30.0   -30.0     0.0    30.0   -30.0    0.000    0.600    0.000"
			"    0.600  gone  c                   app.py:30\n"
			"  60.0    40.0   +20.0    60.0    40.0   +20.0    0.600    0.800    0.600"
			"    0.800        b                   app.py:20\n"
			"  10.0     0.0   +10.0    10.0     0.0   +10.0    0.100    0.000    0.100"
			"    0.000  new   [no python frames]\n"
			"  30.0    30.0    +0.0    90.0   100.0   -10.0    0.300    0.600    0.900"
			"    2.000        a                   app.py:10\n"
			"   0.0     0.0    +0.0    10.0     0.0   +10.0    0.000    0.000    0.100"
			"    0.000  new   d                   app.py:40\n"));
	profile_destroy(profile);
}

Test(summary_diff, omits_columns_on_narrow_terminals)
{
	static const struct {
		unsigned columns;
		const char *head;
	} cases[] = {
		{129, "\n self%  before    diff  total%  before    diff        function"},
		{96, "\n self%  before    diff  total%  before    diff        function"},
		{95, "\n self%    diff  total%    diff        function"},
		{60, "\n self%    diff  total%    diff        function"},
	};
	struct profile *profile = new_profile();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_free char *text =
			write_diff(profile, (struct artefact_options){.max_rows = 10,
								      .columns = cases[i].columns});

		cr_expect(strstr(text, cases[i].head) != NULL, "%s", text);
		expect_width(text, cases[i].columns);
	}
	profile_destroy(profile);
}

Test(summary_diff, counts_the_rows_left_out)
{
	struct profile *profile = new_profile();
	cleanup_free char *text = write_diff(profile, (struct artefact_options){.max_rows = 2});

	cr_expect(strstr(text, "b         app.py:20\n     …  and 3 more\n") != NULL, "%s", text);
	profile_destroy(profile);
}

/* A base without samples. */
Test(summary_diff, empty_base_makes_all_rows_new)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);
	cleanup_free char *text = NULL;

	cr_assert(profile != NULL);
	add(profile, PROFILE_SHOWN, "a", 1);
	text = write_diff(profile, (struct artefact_options){.max_rows = 2});
	cr_expect(strstr(text,
			 "\n 100.0     0.0  +100.0   100.0     0.0  +100.0    0.001    0.000  "
			 "  0.001    0.000  new   a         app.py:10\n") != NULL,
		  "%s", text);
	profile_destroy(profile);
}
