/* SPDX-License-Identifier: MIT */
#include "cmd/viewer_command.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static int write_no_text(const struct artefact *artefact, FILE *out)
{
	(void)artefact;
	(void)out;
	return 0;
}

static const struct format recording = {.name = "recording", .suffixes = {".pysample"}};
static const struct format pprof = {.name = "pprof", .write = write_no_text};
static const struct format callgrind = {.name = "callgrind", .write = write_no_text};
static const struct format summary = {.name = "summary", .write = write_no_text};

static void expect_command(const struct format *format, const char *path, const char *expected)
{
	struct text text = {0};

	viewer_command_append(format, path, &text);
	cr_expect(eq(str, (char *)text_string(&text), (char *)expected), "%s", path);
	text_done(&text);
}

Test(viewer_command, names_the_file)
{
	expect_command(&pprof, "a/out.pb.gz", "go tool pprof -http=: a/out.pb.gz");
	expect_command(&callgrind, "x", "kcachegrind x");
	expect_command(&summary, "x.summary", "");
}

Test(viewer_command, suggests_a_page_for_a_recording)
{
	static const struct {
		const char *path;
		const char *file, *page;
	} cases[] = {
		{"x.pysample", "x.pysample", "x.html"},
		{"a.b/x", "a.b/x", "a.b/x.html"},
		{".pysample", ".pysample", ".pysample.html"},
		{"-x.pysample", "./-x.pysample", "./-x.html"},
		{"my x.pysample", "'my x.pysample'", "'my x.html'"},
		{"it's;$(x)\n", "'it'\\''s;$(x)\n'", "'it'\\''s;$(x)\n.html'"},
		{"\xc3\xa9.pysample", "'\xc3\xa9.pysample'", "'\xc3\xa9.html'"},
	};
	/* The page is suggested only if its format is built in. */
	const bool has_page = format_of_path("x.html") != NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text expected = {0};

		text_printf(&expected, "pysample report %s", cases[i].file);
		if (has_page)
			text_printf(&expected, " -o %s", cases[i].page);
		expect_command(&recording, cases[i].path, text_string(&expected));
		text_done(&expected);
	}
}
