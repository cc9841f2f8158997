/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/flamegraph_svg.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/made_sample.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct function functions[] = {
	{0, 1, "<module>", "/srv/app.py", FUNCTION_PYTHON},
	{1, 7, "</title><script>alert(\"1\")&\n\033[1m\xff", "/srv/a;b.py", FUNCTION_PYTHON},
	{2, 0, "<GC>", "", FUNCTION_COLLECTOR},
	{3, 9, "a_function_whose_name_is_long", "/usr/lib/python3.12/os.py", FUNCTION_PYTHON},
};
static const struct frame stacks[][3] = {
	{{&functions[0], 1}, {&functions[3], 9}, {&functions[2], 0}},
	{{&functions[0], 1}, {&functions[1], 7}},
};
static const struct sample_thread thread = {.tid = 42, .name = "main"};

static struct profile *new_profile(const struct profile_options *options)
{
	struct profile *profile = profile_create(options);

	cr_assert(profile != NULL);
	return profile;
}

static void push_times(struct profile *profile, const struct frame *frames, uint32_t nr_frames,
		       uint32_t nr_times)
{
	for (uint32_t i = 0; i < nr_times; i++)
		cr_assert(eq(int, push_sample(profile, &thread, frames, nr_frames, 0, 1000000), 0));
}

static char *write_svg(const struct artefact *artefact)
{
	size_t size;

	return artefact_text(flamegraph_svg_write, artefact, &size);
}

/* The image of a profile with one run. */
static char *write_profile(const struct profile *profile)
{
	const struct run run = {.info = {.target.command_line = "python3 <x>"},
				.stats = {.samples = 8}};

	return write_svg(&(struct artefact){.profile = profile, .runs = &run, .nr_runs = 1});
}

static void expect_text(const char *svg, const char *expected)
{
	cr_expect(strstr(svg, expected) != NULL, "no %s in %s", expected, svg);
}

static uint32_t count_of(const char *text, const char *part)
{
	uint32_t nr = 0;

	for (; (text = strstr(text, part)); text++)
		nr++;
	return nr;
}

Test(flamegraph_svg, title_describes_each_frame)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	cleanup_free char *svg = NULL;

	push_times(profile, stacks[0], 3, 4);
	push_times(profile, stacks[1], 2, 3);
	push_times(profile, NULL, 0, 1);
	svg = write_profile(profile);
	expect_text(svg, "<title>all (8 samples, 100.00%)</title>");
	expect_text(svg, "<title>[no python frames] (1 samples, 12.50%)</title>");
	expect_text(svg, "<title>&lt;module&gt; (/srv/app.py:1) (7 samples, 87.50%)</title>");
	expect_text(svg, "<title>&lt;GC&gt; (4 samples, 50.00%)</title>");
	expect_text(svg, "<title>&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&amp;\\x0a\\x1b[1m"
			 "\\xff (/srv/a;b.py:7) (3 samples, 37.50%)</title>");
	expect_text(svg, ">python3 &lt;x&gt;</text>");
	expect_text(svg, "8 samples · 0.00% lost</text>");
	cr_expect(eq(u32, count_of(svg, "<g>"), 6));
	cr_expect(strstr(svg, "script>alert") == NULL);
	cr_expect(strstr(svg, "left out") == NULL);
	cr_expect(eq(u32, count_of(svg, "</svg>\n"), 1));
	profile_destroy(profile);
}

/*
 * Eight samples are 1180 pixels wide. Those without a frame come first, then names in
 * alphabetical order.
 */
Test(flamegraph_svg, lays_frames_out_by_name)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	cleanup_free char *svg = NULL;

	push_times(profile, stacks[0], 3, 4);
	push_times(profile, stacks[1], 2, 3);
	push_times(profile, NULL, 0, 1);
	svg = write_profile(profile);
	expect_text(svg, "<title>&lt;module&gt; (/srv/app.py:1) (7 samples, 87.50%)</title>"
			 "<rect x=\"157.5\" y=\"88\" width=\"1032.5\" height=\"15\" fill=\"#");
	expect_text(svg, "(3 samples, 37.50%)</title><rect x=\"157.5\" y=\"72\" width=\"442.5\"");
	expect_text(svg, "<title>&lt;GC&gt; (4 samples, 50.00%)</title>"
			 "<rect x=\"600.0\" y=\"56\" width=\"590.0\"");
	profile_destroy(profile);
}

Test(flamegraph_svg, cuts_long_labels)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	cleanup_free char *svg = NULL;

	push_times(profile, stacks[0], 2, 1);
	push_times(profile, stacks[1], 1, 11);
	svg = write_profile(profile);
	/* 1180 / 12 - 6 pixels are 13 characters. */
	expect_text(svg, ">a_function_..</text>");
	profile_destroy(profile);
}

Test(flamegraph_svg, omits_invisible_frames)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	struct frame deep[SVG_MAX_ROWS + 5];
	cleanup_free char *svg = NULL;

	for (size_t i = 0; i < NR(deep); i++)
		deep[i] = stacks[0][1];
	push_times(profile, deep, NR(deep), 20000);
	push_times(profile, stacks[1], 2, 1);
	svg = write_profile(profile);
	expect_text(svg, ">2 frames narrower than 0.1 px left out. "
			 "6 frames deeper than 500 rows left out. </text>");
	expect_text(svg, "(20,000 samples, 100.00%)</title>");
	cr_expect(eq(u32, count_of(svg, "<g>"), SVG_MAX_ROWS));
	profile_destroy(profile);
}

Test(flamegraph_svg, shows_threads_below_their_roots)
{
	struct profile *profile = new_profile(&(struct profile_options){.by_thread = true});
	cleanup_free char *svg = NULL;

	push_times(profile, stacks[0], 1, 3);
	push_times(profile, NULL, 0, 1);
	svg = write_profile(profile);
	expect_text(svg, "<title>thread main (42) (4 samples, 100.00%)</title>"
			 "<rect x=\"10.0\" y=\"72\" width=\"1180.0\"");
	expect_text(svg, "<title>[no python frames] (1 samples, 25.00%)</title>"
			 "<rect x=\"10.0\" y=\"56\" width=\"295.0\"");
	expect_text(svg, "<title>&lt;module&gt; (/srv/app.py:1) (3 samples, 75.00%)</title>"
			 "<rect x=\"305.0\" y=\"56\"");
	profile_destroy(profile);
}

Test(flamegraph_svg, weighs_cpu_time)
{
	struct profile *profile = new_profile(&(struct profile_options){.mode = PROFILE_CPU});
	const struct profile_sample sample = {
		.cpu_ns = 2500700,
		.flags = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU,
	};
	cleanup_free char *svg = NULL;
	uint32_t number;

	cr_assert(eq(int, profile_get_function(profile, &functions[0], &number), 0));
	cr_assert(eq(int, profile_get_node(profile, PROFILE_NONE, number, 1, &number), 0));
	cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	svg = write_profile(profile);
	expect_text(svg, "<title>all (2,501 microseconds, 100.00%)</title>");
	profile_destroy(profile);
}

/* main: leaf has 3 of 4 now and 1 of 2 in the base. Frames that only the base has are listed. */
Test(flamegraph_svg, colours_a_comparison)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	const struct run run = {0};
	const struct artefact artefact = {
		.profile = profile, .has_base = true, .runs = &run, .nr_runs = 1};
	cleanup_free char *svg = NULL;

	push_times(profile, stacks[0], 2, 3);
	push_times(profile, stacks[0], 1, 1);
	for (uint32_t node = 0; node < 3; node++)
		cr_assert(eq(int,
			     profile_add(profile, PROFILE_BASE,
					 &(struct profile_sample){.wall_ns = 1, .node = node % 2}),
			     0));
	push_times(profile, stacks[1], 2, 0);
	svg = write_svg(&artefact);
	expect_text(svg, "<title>&lt;module&gt; (/srv/app.py:1) (4,000 microseconds, 100.00%; "
			 "+0.00%)</title>");
	expect_text(svg, "(3,000 microseconds, 75.00%; +41.67%)</title>");
	expect_text(svg, "full colour is 41.67%</text>");
	cr_expect(eq(u32, count_of(svg, "fill=\"#fafafa\""), 2));
	cr_expect(eq(u32, count_of(svg, "fill=\"#fa2828\""), 1));
	profile_destroy(profile);
}

Test(flamegraph_svg, reports_an_empty_profile)
{
	struct profile *profile = new_profile(&(struct profile_options){0});
	cleanup_free char *svg = write_profile(profile);

	expect_text(svg, ">no samples</text>");
	cr_expect(eq(u32, count_of(svg, "<g>"), 0));
	profile_destroy(profile);
}
