/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_source.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE                                                  \
	{                                                      \
		.column = -1, .end_line = -1, .end_column = -1 \
	}

struct source_case {
	const char *name;
	const char *line; /* the file's second line */
	struct frame_detail detail;
	const char *expected;
};

static const struct source_case cases[] = {
	{"no columns", "\tcall(a, b)\n", WHOLE, "    call(a, b)\n"},
	{"a part",
	 "\tx = call(a, b)\n",
	 {.column = 5, .end_line = 2, .end_column = 15},
	 "    x = call(a, b)\n        ^^^^^^^^^^\n"},
	{"all of it",
	 "\tcall(a, b)  \n",
	 {.column = 1, .end_line = 2, .end_column = 11},
	 "    call(a, b)\n"},
	{"continues in the next line",
	 "    x = call(a,\n",
	 {.column = 8, .end_line = 3, .end_column = 2},
	 "    x = call(a,\n        ^^^^^^^\n"},
	{"wide characters",
	 "x = 中文(é)\n",
	 {.column = 4, .end_line = 2, .end_column = 14},
	 "    x = 中文(é)\n        ^^^^^^^\n"},
	{"wide characters before",
	 "中 = f(1) + 1\n",
	 {.column = 6, .end_line = 2, .end_column = 10},
	 "    中 = f(1) + 1\n         ^^^^\n"},
	{"a control character before",
	 "'\x1b' + f()\n",
	 {.column = 6, .end_line = 2, .end_column = 9},
	 "    '\\x1b' + f()\n             ^^^\n"},
	{"columns beyond the line",
	 "f()\n",
	 {.column = 70, .end_line = 2, .end_column = 80},
	 "    f()\n"},
	{"columns that go back",
	 "f(g())\n",
	 {.column = 5, .end_line = 2, .end_column = 2},
	 "    f(g())\n"},
	{"columns without an end",
	 "f(g())\n",
	 {.column = 2, .end_line = 2, .end_column = INT32_MAX},
	 "    f(g())\n      ^^^^\n"},
	{"lines that go back",
	 "f(g())\n",
	 {.column = 2, .end_line = 1, .end_column = 4},
	 "    f(g())\n"},
	{"a blank line", "   \n", WHOLE, ""},
	{"empty line", "\n", {.column = 0, .end_line = 2, .end_column = 1}, ""},
};

/* Write a file of three lines, with line as the second. */
static void write_file(const char *path, const char *line)
{
	FILE *file = fopen(path, "w");

	cr_assert(ne(ptr, file, NULL));
	(void)fprintf(file, "first\n%slast\n", line);
	(void)fclose(file);
}

/* The text appended for a line of the file at path; free() it. */
static char *appended(const char *path, int32_t line, const struct frame_detail *detail,
		      uint64_t until_ns)
{
	const struct function function = {.qualname = "f", .path = path};
	const struct frame frame = {.function = &function, .line = line};
	struct source_lines lines = {.until_ns = until_ns, .newer = "the core"};
	struct text text = {0};
	char *copy;

	dump_source_append(&text, &lines, &frame, detail);
	cr_expect(zero(int, text.error));
	copy = strdup(text_string(&text));
	text_done(&text);
	source_lines_done(&lines);
	return copy;
}

Test(dump_source, lines_are_marked_where_they_execute)
{
	char folder[] = "/tmp/pysample-unit-XXXXXX";
	char path[64];

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, chmod(folder, 0755)));
	(void)snprintf(path, sizeof(path), "%s/a.py", folder);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *got;

		write_file(path, cases[i].line);
		got = appended(path, 2, &cases[i].detail, 0);
		cr_expect(eq(str, got, (char *)cases[i].expected), "%s", cases[i].name);
		free(got);
	}
	(void)unlink(path);
	(void)rmdir(folder);
}

Test(dump_source, unavailable_source_is_omitted)
{
	const struct frame_detail whole = WHOLE;
	char folder[] = "/tmp/pysample-unit-XXXXXX";
	char path[64];
	const struct {
		const char *path;
		int32_t line;
		uint64_t until_ns;
		const char *expected;
	} none[] = {
		{path, 2, 1, "    (source is newer than the core)\n"},
		{path, 0, 0, ""},
		{path, -1, 0, ""},
		{path, 4, 0, ""},
		{path, INT32_MAX, 0, ""},
		{"/nowhere/a.py", 2, 0, ""},
		{"/etc/passwd", 1, 0, ""},
		{"<string>", 1, 0, ""},
		{"", 1, 0, ""},
	};

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, chmod(folder, 0755)));
	(void)snprintf(path, sizeof(path), "%s/a.py", folder);
	write_file(path, "second\n");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		char *got = appended(none[i].path, none[i].line, &whole, none[i].until_ns);

		cr_expect(eq(str, got, (char *)none[i].expected), "%zu", i);
		free(got);
	}
	(void)unlink(path);
	(void)rmdir(folder);
}
