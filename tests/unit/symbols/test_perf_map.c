/* SPDX-License-Identifier: MIT */
#include "symbols/jit/perf_map.h"
#include "tests/support/expected_code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct reader {
	int fd; /* owned by the perf_map */
	struct perf_map *perf_map;
	struct jit_map *map;
};

static struct reader open_reader(void)
{
	struct reader reader = {.fd = memfd_create("perf.map", MFD_CLOEXEC),
				.map = jit_map_create()};

	cr_assert(ge(int, reader.fd, 0));
	cr_assert(zero(int, perf_map_open(reader.fd, 0, 0, &reader.perf_map)));
	return reader;
}

static void append(const struct reader *reader, const char *text)
{
	cr_assert(lseek(reader->fd, 0, SEEK_END) >= 0);
	cr_assert(write(reader->fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void read_map(const struct reader *reader, bool is_final)
{
	cr_assert(zero(int, perf_map_read(reader->perf_map, reader->map, is_final)));
}

static void close_reader(struct reader *reader)
{
	perf_map_close(reader->perf_map);
	jit_map_destroy(reader->map);
}

Test(perf_map, parses_lines)
{
	static const struct {
		const char *text;
		remote_addr addr;
		const char *name;
	} cases[] = {
		{"1000 10 py::f:/a.py\n", 0x1000, "py::f:/a.py"},
		{"1000 10 py::f:/a b.py \n", 0x100f, "py::f:/a b.py "},
		{"0x1000 0x10 with\ttab\n", 0x1000, "with\ttab"},
		{"ABCdef 1 f\n", 0xabcdef, "f"},
		{"ffffffffffff0000 10 high\n", 0xffffffffffff0000, "high"},
		{"1000 10 \n", 0x1000, ""},
		{"1000 10\n", 0x1000, "-"},
		{"1000 0 empty\n", 0x1000, "-"},
		{"1000  f\n", 0x1000, "-"},
		{"x000 10 f\n", 0x1000, "-"},
		{"11111111111111111 10 f\n", 0x1111111111111111, "-"},
		{"ffffffffffffffff 1 f\n", 0xfffffffffffffffe, "-"},
		{"\n", 0, "-"},
		{"1000 10 cut", 0x1000, "cut"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reader reader = open_reader();
		const bool is_bad = strcmp(cases[i].name, "-") == 0;

		append(&reader, cases[i].text);
		read_map(&reader, true);
		expect_code(reader.map, cases[i].addr, 5, cases[i].name);
		cr_expect(eq(u64, perf_map_nr_bad_lines(reader.perf_map), is_bad), "%s",
			  cases[i].text);
		close_reader(&reader);
	}
}

/* Lines of a previous process with the same id come first. */
Test(perf_map, last_entry_wins)
{
	struct reader reader = open_reader();

	append(&reader, "1000 10 old\n1010 10 stays\n1008 8 new\n");
	read_map(&reader, false);
	expect_code(reader.map, 0x1000, 5, "-");
	expect_code(reader.map, 0x1008, 5, "new");
	expect_code(reader.map, 0x1010, 5, "stays");
	append(&reader, "1000 20 newest\n");
	read_map(&reader, false);
	expect_code(reader.map, 0x1008, 5, "newest");
	expect_code(reader.map, 0x1010, 5, "newest");
	close_reader(&reader);
}

Test(perf_map, reads_a_file_that_grows_byte_by_byte)
{
	static const char text[] = "1000 10 one\n2000 10 two\n3000 10 three\n";
	struct reader reader = open_reader();

	for (const char *at = text; *at; at++) {
		append(&reader, (char[]){*at, '\0'});
		read_map(&reader, false);
	}
	expect_code(reader.map, 0x1000, 5, "one");
	expect_code(reader.map, 0x2000, 5, "two");
	expect_code(reader.map, 0x3000, 5, "three");
	cr_expect(zero(u64, perf_map_nr_bad_lines(reader.perf_map)));
	close_reader(&reader);
}

Test(perf_map, long_line_is_skipped)
{
	struct reader reader = open_reader();
	char *text = malloc(300000);

	append(&reader, "1000 10 one\n2000 10 ");
	memset(text, 'x', 299999);
	text[299999] = '\0';
	append(&reader, text);
	append(&reader, "\n3000 10 three\n");
	read_map(&reader, false);
	expect_code(reader.map, 0x1000, 5, "one");
	expect_code(reader.map, 0x2000, 5, "-");
	expect_code(reader.map, 0x3000, 5, "three");
	cr_expect(eq(u64, perf_map_nr_bad_lines(reader.perf_map), 1));
	free(text);
	close_reader(&reader);
}

Test(perf_map, rewritten_file_is_read_from_its_start)
{
	struct reader reader = open_reader();

	append(&reader, "1000 10 one\n2000 10 two\n");
	read_map(&reader, false);
	cr_assert(zero(int, ftruncate(reader.fd, 0)));
	append(&reader, "1000 10 new\n");
	read_map(&reader, false);
	expect_code(reader.map, 0x1000, 5, "new");
	expect_code(reader.map, 0x2000, 5, "two");
	close_reader(&reader);
}
