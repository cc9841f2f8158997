/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/page/page_source.h"
#include "procmem/cleanup.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static char folder[] = "/tmp/test_page_source.XXXXXX";
static char paths[3][64];

/* Make a file of nr_lines lines, each with its number and more zeros. */
static void make_file(size_t number, uint32_t nr_lines, int more)
{
	FILE *out;

	(void)snprintf(paths[number], sizeof(paths[number]), "%s/%zu.py", folder, number);
	out = fopen(paths[number], "w");
	cr_assert(out != NULL);
	for (uint32_t i = 1; i <= nr_lines; i++)
		(void)fprintf(out, "%u%0*d\n", (unsigned)i, more, 0);
	cr_assert(eq(int, fclose(out), 0));
}

static void make_folder(void)
{
	cr_assert(mkdtemp(folder) != NULL);
	cr_assert(eq(int, chmod(folder, 0755), 0));
	make_file(0, 3000, 1);
	make_file(1, 100, 1000);
	make_file(2, 2000, 300);
}

static void remove_folder(void)
{
	for (size_t i = 0; i < NR(paths); i++)
		(void)unlink(paths[i]);
	cr_assert(eq(int, rmdir(folder), 0));
}

TestSuite(page_source, .init = make_folder, .fini = remove_folder);

/* A line that is the innermost one in nr_samples samples. */
struct executed {
	const char *name;
	size_t file;
	int32_t first_line, line;
	uint32_t nr_samples;
};

static struct profile *make_profile(const struct executed *lines, size_t nr)
{
	const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	for (size_t i = 0; i < nr; i++) {
		const struct function function = {.qualname = lines[i].name,
						  .path = paths[lines[i].file],
						  .first_line = lines[i].first_line};
		struct profile_sample sample = {.wall_ns = 1, .thread = PROFILE_NONE};
		uint32_t row;

		cr_assert(eq(int, profile_get_function(profile, &function, &row), 0));
		cr_assert(eq(
			int,
			profile_get_node(profile, PROFILE_NONE, row, lines[i].line, &sample.node),
			0));
		for (uint32_t k = 0; k < lines[i].nr_samples; k++)
			cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	}
	return profile;
}

static void read_sources(const struct profile *profile, const struct run *run, bool no_source,
			 struct page_sources *sources)
{
	const struct artefact artefact = {
		.profile = profile, .runs = run, .nr_runs = 1, .options = {.no_source = no_source}};
	struct page_index index;

	*sources = (struct page_sources){0};
	cr_assert(eq(int, page_index_init(&index, &artefact), 0));
	cr_assert(eq(int, page_sources_read(sources, &index, &artefact), 0));
	page_index_done(&index);
}

Test(page_source, holds_the_executed_lines)
{
	static const struct executed lines[] = {
		{"<module>", 0, 1, 1, 1},
		{"<module>", 0, 1, 2999, 0},
		{"A.f", 0, 100, 103, 1},
		{"A.f", 0, 100, 101, 1},
		{"g", 0, 104, 106, 1},
		{"h", 0, 105, 105, 1},
		{"long", 0, 1000, 2500, 1},
		{"no_first_line", 0, 0, 50, 1},
		{"after_the_end", 0, 3500, 3501, 1},
		{"no_line", 0, 200, 0, 1},
	};
	static const struct {
		uint32_t first_line, nr_lines;
	} expected[] = {{1, 3}, {50, 1}, {100, 7}, {1000, PAGE_SOURCE_MAX_LINES}, {2997, 4}};
	struct profile *profile = make_profile(lines, NR(lines));
	struct page_sources sources;

	read_sources(profile, &(struct run){0}, false, &sources);
	cr_assert(eq(u32, sources.nr, NR(expected)));
	for (size_t i = 0; i < NR(expected); i++) {
		cr_expect(eq(u32, sources.rows[i].first_line, expected[i].first_line));
		cr_expect(eq(u32, sources.rows[i].nr_lines, expected[i].nr_lines));
	}
	cr_expect(eq(str, sources.rows[2].lines, (char *)"1000"));
	cr_expect(eq(str, sources.rows[2].lines + 5, (char *)"1010"));
	page_sources_done(&sources);
	profile_destroy(profile);
}

Test(page_source, is_bounded)
{
	static const struct executed lines[] = {
		{"wide", 1, 1, 2, 1},
		{"first", 2, 1, 1000, 2},
		{"second", 2, 1001, 2000, 2},
	};
	struct profile *profile = make_profile(lines, NR(lines));
	struct page_sources sources;

	read_sources(profile, &(struct run){0}, false, &sources);
	cr_assert(eq(u32, sources.nr, 2));
	cr_expect(sources.bytes <= PAGE_SOURCE_MAX_FILE_BYTES + PAGE_SOURCE_MAX_LINE_BYTES * 4);
	cr_expect(sources.rows[0].nr_lines > 500 && sources.rows[0].nr_lines < 1000);
	cr_expect(eq(u32, sources.rows[1].nr_lines, 2), "the other file comes second");
	cr_expect(eq(sz, strlen(sources.rows[1].lines), PAGE_SOURCE_MAX_LINE_BYTES));
	page_sources_done(&sources);
	profile_destroy(profile);
}

Test(page_source, is_omitted_if_the_file_may_have_changed)
{
	static const struct executed lines[] = {{"f", 0, 1, 2, 1}};
	static const struct {
		struct run run;
		bool no_source;
		uint32_t nr;
	} cases[] = {
		{{.info = {.target.pid = 1}}, false, 1},
		{{.info = {.target.pid = 1}}, true, 0},
		{{.info = {.pysample.host = "no.such.host.anywhere"}}, false, 0},
		{{.info = {.start_unix_ns = 1}, .stats = {.start_ns = 5, .end_ns = 9}}, false, 0},
		{{.info = {.start_unix_ns = (uint64_t)1 << 62}}, false, 1},
	};
	struct profile *profile = make_profile(lines, NR(lines));

	for (size_t i = 0; i < NR(cases); i++) {
		struct page_sources sources;

		read_sources(profile, &cases[i].run, cases[i].no_source, &sources);
		cr_expect(eq(u32, sources.nr, cases[i].nr), "case %zu", i);
		page_sources_done(&sources);
	}
	profile_destroy(profile);
}
