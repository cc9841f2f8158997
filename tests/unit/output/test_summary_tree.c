/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"
#include "tests/support/summary_text.h"

#define NS_PER_MS 1000000ull
#define HEAD	  "total%   self%  total s   self s  function\n"

static struct profile *new_profile(void)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

static char *write_tree(const struct profile *profile, uint32_t max_rows, unsigned columns)
{
	const struct run run = {.info = {.target.pid = 1}};
	const struct artefact artefact = {
		.profile = profile,
		.runs = &run,
		.nr_runs = 1,
		.options = {.tree = true, .max_rows = max_rows, .columns = columns},
	};

	return summary_text(&artefact);
}

static void add(struct profile *profile, const char *stack, unsigned ms)
{
	add_stack(profile, PROFILE_SHOWN, stack, ms * NS_PER_MS);
}

/* 2 s in all. The largest branch comes first; those below half a percent share one line. */
static struct profile *new_tree(void)
{
	struct profile *profile = new_profile();

	add(profile, "a;b;c", 250);
	add(profile, "a;b;d", 500);
	add(profile, "a;e", 800);
	add(profile, "a", 200);
	add(profile, "a;f;g", 2);
	add(profile, "a;f;h", 4);
	add(profile, "a;e;h", 2);
	add(profile, "i;b", 200);
	add(profile, "", 42);
	return profile;
}

Test(summary_tree, indents_callees)
{
	struct profile *profile = new_tree();
	cleanup_free char *text = write_tree(profile, 100, 0);

	cr_expect(eq(str, (char *)summary_body(text, HEAD),
		     (char *)HEAD "  87.9    10.0    1.758    0.200  a (app.py:10)\n"
				  "  40.1    40.0    0.802    0.800  ├─ e (app.py:50)\n"
				  "  37.5     0.0    0.750    0.000  └─ b (app.py:20)\n"
				  "  25.0    25.0    0.500    0.500     ├─ d (app.py:40)\n"
				  "  12.5    12.5    0.250    0.250     └─ c (app.py:30)\n"
				  "  10.0     0.0    0.200    0.000  i (app.py:90)\n"
				  "  10.0    10.0    0.200    0.200  └─ b (app.py:20)\n"
				  "   2.1     2.1    0.042    0.042  [no python frames]\n"
				  "     …  and 4 more calls: 0.4% in total, at most 0.3% each\n"));
	profile_destroy(profile);
}

/* Only the largest rows are shown, and the connectors account for the missing ones. */
Test(summary_tree, shows_the_largest_rows_and_counts_the_rest)
{
	struct profile *profile = new_tree();
	cleanup_free char *text = write_tree(profile, 4, 0);

	cr_expect(eq(str, (char *)summary_body(text, HEAD),
		     (char *)HEAD
		     "  87.9    10.0    1.758    0.200  a (app.py:10)\n"
		     "  40.1    40.0    0.802    0.800  ├─ e (app.py:50)\n"
		     "  37.5     0.0    0.750    0.000  └─ b (app.py:20)\n"
		     "  25.0    25.0    0.500    0.500     └─ d (app.py:40)\n"
		     "     …  and 7 more calls: 25.0% in total, at most 12.5% each\n"));
	profile_destroy(profile);
}

/*
 * Ten calls in a row, with a thousandth elsewhere: the middle ones become one line, at one level.
 */
Test(summary_tree, folds_chains)
{
	struct profile *profile = new_profile();
	cleanup_free char *text = NULL;

	add(profile, "a;b;c;d;e;f;g;h;i;j;k", 600);
	add(profile, "a;b;c;d;e;f;g;h;i;j;l", 398);
	add(profile, "a;b;c;d;m", 1);
	add(profile, "a;b;c;d;e", 1);
	text = write_tree(profile, 100, 0);
	cr_expect(eq(str, (char *)summary_body(text, HEAD),
		     (char *)HEAD
		     " 100.0     0.0    1.000    0.000  a (app.py:10)\n"
		     " 100.0     0.0    1.000    0.000  └─ b (app.py:20)\n"
		     " 100.0     0.0    1.000    0.000     └─ c (app.py:30)\n"
		     " 100.0     0.0    1.000    0.000        └─ ⋮  4 calls\n"
		     "  99.8     0.0    0.998    0.000           └─ h (app.py:80)\n"
		     "  99.8     0.0    0.998    0.000              └─ i (app.py:90)\n"
		     "  99.8     0.0    0.998    0.000                 └─ j (app.py:100)\n"
		     "  60.0    60.0    0.600    0.600                    ├─ k (app.py:110)\n"
		     "  39.8    39.8    0.398    0.398                    └─ l (app.py:120)\n"
		     "     …  and 1 more call: 0.1% in total, at most 0.1% each\n"));
	profile_destroy(profile);
}

/* A folded chain costs as many rows as it has lines. */
Test(summary_tree, folded_chains_are_compact)
{
	struct profile *profile = new_profile();
	cleanup_free char *text = NULL;

	add(profile, "a;b;c;d;e;f;g;h;i;j;k", 600);
	add(profile, "a;b;c;d;e;f;g;h;i;j;l", 400);
	text = write_tree(profile, 9, 0);
	cr_expect(strstr(text, "l (app.py:120)\n") != NULL, "%s", text);
	cr_expect(strstr(text, "…") == NULL, "%s", text);
	profile_destroy(profile);
}

Test(summary_tree, keeps_to_the_width)
{
	struct profile *profile = new_profile();

	/* Ten levels, each with own time. */
	for (unsigned depth = 1; depth <= 10; depth++) {
		char stack[64] = "a_function_with_a_name_that_is_long";

		for (unsigned i = 0; i < depth; i++)
			(void)strcat(stack, ";b");
		add(profile, stack, 100);
	}
	for (unsigned columns = 60; columns < 140; columns++) {
		cleanup_free char *text = write_tree(profile, 100, columns);

		expect_width(text, columns);
		cr_expect(strstr(text, "app.py:20)\n") != NULL, "%s", text);
	}
	profile_destroy(profile);
}

/*
 * The target decides the depth, so the writer must not recurse: half a million calls, each worth
 * a row.
 */
Test(summary_tree, writes_very_deep_trees)
{
	struct profile *profile = new_profile();
	struct profile_sample sample = {
		.wall_ns = 1000,
		.thread = PROFILE_NONE,
		.node = PROFILE_NONE,
	};
	struct function function = {.qualname = "f", .path = "app.py", .first_line = 1};
	cleanup_free char *text = NULL;
	uint32_t index;

	cr_assert(eq(int, profile_get_function(profile, &function, &index), 0));
	for (int i = 0; i < 500000; i++)
		cr_assert(
			eq(int, profile_get_node(profile, sample.node, index, 1, &sample.node), 0));
	cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	text = write_tree(profile, 100, 80);
	cr_expect(strstr(text, "⋮  499994 calls\n") != NULL, "%s", text);
	cr_expect(strlen(text) < 2000);
	profile_destroy(profile);
}
