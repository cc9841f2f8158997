/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/summary/summary.h"
#include "output/text/utf8.h"
#include "procmem/cleanup.h"
#include "tests/support/made_sample.h"
#include "tests/support/summary_text.h"

#define NS_PER_MS 1000000ull

static const struct function functions[] = {
	{0, 1, "main", "app.py", FUNCTION_PYTHON},
	{1, 20, "Parser.parse", "/usr/lib/python3/dist-packages/parser/core/parser.py",
	 FUNCTION_PYTHON},
	{2, 3, "evil\n\033[2J", "e\xc2\x9bvil.py", FUNCTION_PYTHON},
	{3, 4, "\xe4\xb8\xad\xe6\x96\x87\xe5\x90\x8d", "wide.py", FUNCTION_PYTHON},
};
static const struct sample_thread thread = {.id = 0, .tid = 42, .name = "python3"};
static const struct sampler_stats stats = {
	.ticks = 1999,
	.samples = 2000,
	.lost = {[LOSS_MOVED] = 1},
	.late_ticks = 1,
	.start_ns = 0,
	.end_ns = 2000 * NS_PER_MS,
};
static const struct run_info info = {
	.target.command_line = "python3 app.py --name=a\nb",
	.target.pid = 42,
	.python.version = "3.12.1",
	.requested_hz = 1000,
};

/* main calls everything: 1 s in parse, 0.75 s in evil, 0.2 s in wide; 0.05 s are idle. */
static struct profile *new_profile(bool by_thread)
{
	const struct profile_options options = {.by_thread = by_thread};
	const struct frame parse[] = {{&functions[0], 1}, {&functions[1], 1}};
	const struct frame evil[] = {{&functions[0], 1}, {&functions[2], 1}};
	const struct frame wide[] = {{&functions[0], 1}, {&functions[3], 1}};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	cr_assert(eq(int, push_sample(profile, &thread, wide, 2, 0, 200 * NS_PER_MS), 0));
	cr_assert(eq(int, push_sample(profile, &thread, parse, 2, 1, 1000 * NS_PER_MS), 0));
	cr_assert(eq(int, push_sample(profile, &thread, evil, 2, 1, 750 * NS_PER_MS), 0));
	cr_assert(eq(int, push_sample(profile, &thread, NULL, 0, 0, 50 * NS_PER_MS), 0));
	return profile;
}

static int write_summary(const struct profile *profile, const struct sampler_stats *counters,
			 const struct run_info *about, const struct artefact_options *options,
			 FILE *out)
{
	const struct run run = {*about, *counters};
	const struct artefact artefact = {
		.profile = profile,
		.runs = &run,
		.nr_runs = 1,
		.options = *options,
	};

	return summary_write(&artefact, out);
}

static char *write_text(const struct profile *profile, const struct artefact_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL);
	cr_assert(eq(int, write_summary(profile, &stats, &info, options, out), 0));
	cr_assert(eq(int, fclose(out), 0));
	return text;
}

Test(summary, lists_functions_by_own_time)
{
	const struct artefact_options options = {.max_rows = 10};
	struct profile *profile = new_profile(false);
	cleanup_free char *text = write_text(profile, &options);

	cr_expect(eq(str, text,
		     (char *)"python3 app.py --name=a\\x0ab\n"
			     "pid 42 · Python 3.12.1 · 1 thread · 2.0 s · wall time\n"
			     "1000 of 1000 Hz · 2000 samples · 0.05% lost (moved 1) · "
			     "1 late tick\n"
			     "\n"
			     "shown: 4 of 2000 samples · 2.000 s of wall time · 1 thread\n"
			     "\n"
			     " self%  total%   self s  total s  function            where\n"
			     "  50.0    50.0    1.000    1.000  Parser.parse        "
			     "/usr/lib/python3/dist-packages/parser/core/parser.py:20\n"
			     "  37.5    37.5    0.750    0.750  evil\\x0a\\x1b[2J     "
			     "e\\u009bvil.py:3\n"
			     "  10.0    10.0    0.200    0.200  中文名              wide.py:4\n"
			     "   2.5     2.5    0.050    0.050  [no python frames]\n"
			     "   0.0    97.5    0.000    1.950  main                app.py:1\n"));
	profile_destroy(profile);
}

Test(summary, counts_the_rows_left_out)
{
	const struct artefact_options options = {.max_rows = 2};
	struct profile *profile = new_profile(true);
	cleanup_free char *text = write_text(profile, &options);
	const char *more = strstr(text, "evil.py:3\n");

	cr_assert(more == NULL); /* the rest is escaped */
	more = strstr(text, "vil.py:3\n");
	cr_assert(more != NULL);
	cr_expect(eq(str, (char *)more, (char *)"vil.py:3\n     …  and 3 more\n"));
	profile_destroy(profile);
}

/* A thread's own time in its root is its idle time, which then has no row. */
Test(summary, lists_thread_roots)
{
	const struct artefact_options options = {.max_rows = 10};
	struct profile *profile = new_profile(true);
	cleanup_free char *text = write_text(profile, &options);

	cr_expect(strstr(text, "   2.5   100.0    0.050    2.000  thread python3 (42)\n") != NULL,
		  "%s", text);
	cr_expect(strstr(text, "[no python frames]") == NULL, "%s", text);
	profile_destroy(profile);
}

static unsigned line_width(const char *line, const char *end)
{
	unsigned width = 0;
	uint32_t code_point;

	while (line < end) {
		size_t length = utf8_decode(line, (size_t)(end - line), &code_point);

		cr_assert(length > 0);
		width += utf8_width(code_point);
		line += length;
	}
	return width;
}

Test(summary, keeps_to_the_width)
{
	struct profile *profile = new_profile(false);

	for (unsigned columns = 1; columns < 140; columns++) {
		const struct artefact_options options = {.max_rows = 10, .columns = columns};
		cleanup_free char *text = write_text(profile, &options);
		const char *end;

		for (const char *line = text; *line; line = end + 1) {
			end = strchr(line, '\n');
			cr_assert(end != NULL);
			cr_expect(line_width(line, end) <= (columns < 60 ? 60 : columns),
				  "%u columns: %.*s", columns, (int)(end - line), line);
		}
		cr_expect(strstr(text, "py:20\n") != NULL, "%u columns: %s", columns, text);
	}
	profile_destroy(profile);
}

Test(summary, uses_colour_only_when_requested)
{
	struct profile *profile = new_profile(false);
	const struct artefact_options plain = {.max_rows = 10};
	const struct artefact_options colour = {.max_rows = 10, .colour = true};
	cleanup_free char *without = write_text(profile, &plain);
	cleanup_free char *with = write_text(profile, &colour);
	char *to = with;

	cr_expect(strchr(without, '\033') == NULL);
	cr_expect(strstr(with, "\033[1m self%") != NULL);
	for (const char *from = with; *from;) {
		if (*from == '\033')
			from = strchr(from, 'm') + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
	cr_expect(eq(str, with, without));
	profile_destroy(profile);
}

/* Each of several runs has as many lines as a single one, or one line if there are many runs. */
Test(summary, names_several_runs)
{
	static const struct {
		uint32_t nr_runs, max_rows;
		const char *head;
	} cases[] = {
		{3, 10,
		 "one\npid 1 · 0.0 s · wall time\n0 Hz · 4 samples · 0% lost · 0 late ticks\n\n"
		 "pid 2 · 2.0 s · wall time\n0 Hz · 5 samples · 0% lost · 0 late ticks\n\n"
		 "0.0 s · wall time\n0 Hz · 0 samples · 0% lost · 0 late ticks\n\n"
		 "shown: 4 of 9 samples · 2.000 s of wall time · 1 thread\n\n self%"},
		{4, 10,
		 "pid 1 · 0.0 s · 4 samples · 0% lost · one\n"
		 "pid 2 · 2.0 s · 5 samples · 0% lost\n"
		 "0.0 s · 0 samples · 0% lost\n"
		 "0.0 s · 1 sample · 0% lost\n\n"
		 "shown: 4 of 10 samples · 2.000 s of wall time · 1 thread\n\n self%"},
		{4, 2,
		 "pid 1 · 0.0 s · 4 samples · 0% lost · one\n"
		 "pid 2 · 2.0 s · 5 samples · 0% lost\n"
		 "… and 2 more\n\n"
		 "shown: 4 of 10 samples · 2.000 s of wall time · 1 thread\n\n self%"},
	};
	static const struct run runs[] = {
		{{.target.command_line = "one", .target.pid = 1}, {.samples = 4}},
		{{.target.pid = 2}, {.samples = 5, .end_ns = 2000 * NS_PER_MS}},
		{.stats = {.samples = 0}},
		{.stats = {.samples = 1}},
	};
	struct profile *profile = new_profile(false);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct artefact artefact = {
			.profile = profile,
			.runs = runs,
			.nr_runs = cases[i].nr_runs,
			.options = {.max_rows = cases[i].max_rows},
		};
		cleanup_free char *text = summary_text(&artefact);

		cr_expect(strncmp(text, cases[i].head, strlen(cases[i].head)) == 0, "%s", text);
	}
	profile_destroy(profile);
}

/* There are samples, but none in this mode. */
Test(summary, reports_a_mode_without_samples)
{
	const struct profile_options by_cpu = {.mode = PROFILE_CPU};
	const struct artefact_options options = {.max_rows = 10, .columns = 80};
	const struct sampler_stats some = {.ticks = 3, .samples = 3};
	const struct run_info unknown = {0};
	struct profile *profile = profile_create(&by_cpu);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL);
	cr_assert(eq(int, write_summary(profile, &some, &unknown, &options, out), 0));
	cr_assert(eq(int, fclose(out), 0));
	cr_expect(eq(str, text,
		     (char *)"0 threads · 0.0 s · CPU time\n"
			     "0 Hz · 3 samples · 0% lost · 0 late ticks\n"
			     "\n"
			     "shown: 0 of 3 samples · 0.000 s of CPU time · 0 threads\n"
			     "\n"
			     "no samples of this mode\n"));
	free(text);
	profile_destroy(profile);
}

Test(summary, reports_an_empty_profile)
{
	const struct profile_options by_function = {0};
	const struct artefact_options options = {.max_rows = 10, .columns = 80};
	const struct sampler_stats none = {0};
	const struct run_info unknown = {0};
	struct profile *profile = profile_create(&by_function);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL);
	cr_assert(eq(int, write_summary(profile, &none, &unknown, &options, out), 0));
	cr_assert(eq(int, fclose(out), 0));
	cr_expect(eq(str, text,
		     (char *)"0 threads · 0.0 s · wall time\n"
			     "0 Hz · 0 samples · 0% lost · 0 late ticks\n"
			     "\n"
			     "no samples\n"));
	free(text);
	profile_destroy(profile);
}

Test(summary, reports_a_write_error)
{
	const struct artefact_options options = {.max_rows = 10};
	struct profile *profile = new_profile(false);
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, write_summary(profile, &stats, &info, &options, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy(profile);
}

/* Threads of cores have no time, so they are counted. */
Test(summary, counts_threads_of_cores)
{
	static const struct artefact_options options = {.max_rows = 9};
	static const struct run_info of_core = {
		.target.command_line = "python3 app.py",
		.target.pid = 42,
		.python.version = "3.12.1",
		.target.core = "core.42",
		.target.death = "SIGSEGV",
	};
	const struct profile_options counted = {.mode = PROFILE_COUNT};
	const struct sampler_stats three = {.samples = 3};
	const struct frame frames[] = {{&functions[0], 1}, {&functions[1], 1}};
	struct profile *profile = profile_create(&counted);
	cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL && profile != NULL);
	cr_assert(zero(int, push_sample(profile, &thread, frames, 2, 0, 0)));
	cr_assert(zero(int, push_sample(profile, &thread, frames, 2, 2, 0)));
	cr_assert(zero(int, push_sample(profile, &thread, frames, 1, 1, 0)));
	cr_assert(zero(int, write_summary(profile, &three, &of_core, &options, out)));
	(void)fclose(out);
	cr_expect(eq(str, text,
		     (char *)

			     "python3 app.py\n"
			     "pid 42 · Python 3.12.1 · 3 threads · core.42 · SIGSEGV\n"
			     "\n"
			     " self%  total%     self    total  function      where\n"
			     "  66.7    66.7        2        2  Parser.parse  "
			     "/usr/lib/python3/dist-packages/parser/core/parser.py:20\n"
			     "  33.3   100.0        1        3  main          app.py:1\n"));
	profile_destroy(profile);
}
