/* SPDX-License-Identifier: MIT */
/*
 * Location tables, byte by byte. Tables called real were made by CPython from the source in the
 * comment above them; the expected lines are those of its co_positions().
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "sampler/cpython/code/linetable.h"

#define MAX_TABLE_BYTES 48
#define TABLE(...)	.table = {__VA_ARGS__}, .size_bytes = sizeof((uint8_t[]){__VA_ARGS__})

struct lookup {
	const char *name;
	enum linetable_format format; /* 3.11's by default */
	uint8_t table[MAX_TABLE_BYTES];
	size_t size_bytes;
	int32_t first_line;
	int32_t offset;
	int32_t expected;
};

/* Look up in a heap copy of exactly the table's size, so that ASan sees a read beyond it. */
static int32_t find_line(enum linetable_format format, const uint8_t *table, size_t size_bytes,
			 int32_t first_line, int32_t offset)
{
	uint8_t *copy = size_bytes ? malloc(size_bytes) : NULL;

	if (size_bytes)
		memcpy(copy, table, size_bytes);
	const struct linetable copied = {format, copy, size_bytes, first_line};
	int32_t line = linetable_position(&copied, offset).line;
	free(copy);
	return line;
}

/* Expect the same line when all lines up to it are decoded at once. */
static void expect_line(const struct lookup *l)
{
	size_t nr_units = l->offset < 0 ? 0 : (size_t)l->offset / 2 + 1;
	uint8_t *copy = malloc(l->size_bytes + !l->size_bytes);
	int32_t *lines = calloc(nr_units + 1, sizeof(*lines));

	memcpy(copy, l->table, l->size_bytes);
	lines[nr_units] = -1;
	linetable_lines(&(struct linetable){l->format, copy, l->size_bytes, l->first_line}, lines,
			nr_units);
	cr_expect(eq(i32, lines[nr_units], -1), "%s: one line too many", l->name);
	if (nr_units)
		cr_expect(eq(i32, lines[nr_units - 1], l->expected), "%s, unit %zu", l->name,
			  nr_units - 1);
	free(copy);
	free(lines);
}

static void expect_lookups(const struct lookup *lookups, size_t nr_lookups)
{
	for (size_t i = 0; i < nr_lookups; i++) {
		const struct lookup *l = &lookups[i];

		cr_expect(
			eq(i32,
			   find_line(l->format, l->table, l->size_bytes, l->first_line, l->offset),
			   l->expected),
			"%s, offset %d", l->name, l->offset);
		expect_line(l);
	}
}

#define EXPECT_LOOKUPS(lookups) expect_lookups((lookups), sizeof(lookups) / sizeof((lookups)[0]))

/* Consecutive instructions of a table: those up to end, after the previous run, are on line. */
struct run {
	int32_t end;
	int32_t line;
};

static void expect_runs(const char *name, const uint8_t *table, size_t size_bytes,
			int32_t first_line, const struct run *runs, size_t nr_runs)
{
	int32_t offset = 0;

	for (size_t i = 0; i < nr_runs; i++)
		for (; offset < runs[i].end; offset += 2)
			cr_expect(eq(i32,
				     find_line(LINETABLE_LOCATIONS, table, size_bytes, first_line,
					       offset),
				     runs[i].line),
				  "%s, offset %d", name, offset);
	cr_expect(zero(i32, find_line(LINETABLE_LOCATIONS, table, size_bytes, first_line, offset)),
		  "%s, after it", name);
}

#define EXPECT_RUNS(name, table, first_line, runs)                        \
	expect_runs((name), (table), sizeof(table), (first_line), (runs), \
		    sizeof(runs) / sizeof((runs)[0]))

/*
 *	1 def area(width,
 *	2          height):
 *	3     return max(
 *	4         width,
 *	5         height,
 *	6     ) * 2
 */
Test(linetable, decodes_a_multi_line_call_of_3_12)
{
	static const uint8_t table[] = {0x80, 0x00, 0xe4, 0x0b, 0x0e, 0xd8, 0x08, 0x0d,
					0xd8, 0x08, 0x0e, 0xf3, 0x05, 0x03, 0x0c, 0x06,
					0xf0, 0x06, 0x00, 0x09, 0x0a, 0xf1, 0x07, 0x03,
					0x0c, 0x0a, 0xf0, 0x00, 0x03, 0x05, 0x0a};
	static const struct run runs[] = {
		{2, 1}, {12, 3}, {14, 4}, {16, 5}, {24, 3}, {26, 6}, {30, 3}, {32, 3},
	};

	EXPECT_RUNS("area", table, 1, runs);
}

/*
 *	 9 def managed(lock):
 *	10     with lock:
 *	11         pass
 */
Test(linetable, decodes_code_without_a_line_of_3_15)
{
	static const uint8_t table[] = {0x81, 0x00, 0xdf, 0x09, 0x0d, 0x8a, 0x14, 0xd8,
					0x08, 0x0c, 0xf7, 0x03, 0x00, 0x0a, 0x0e, 0x8f,
					0x14, 0x8f, 0x14, 0x8a, 0x14, 0xfa};
	static const struct run runs[] = {
		{4, 9}, {26, 10}, {28, 11}, {82, 10}, {88, 0},
	};

	EXPECT_RUNS("managed", table, 9, runs);
}

/* The module with both functions. Its first instruction is on line 0. */
Test(linetable, decodes_a_module_of_3_11)
{
	static const uint8_t table[] = {0xf0, 0x03, 0x01, 0x01, 0x01, 0xf0, 0x02, 0x05, 0x01,
					0x0a, 0xf0, 0x00, 0x05, 0x01, 0x0a, 0xf0, 0x00, 0x05,
					0x01, 0x0a, 0xf0, 0x10, 0x02, 0x01, 0x0d, 0xf0, 0x00,
					0x02, 0x01, 0x0d, 0xf0, 0x00, 0x02, 0x01, 0x0d, 0xf0,
					0x00, 0x02, 0x01, 0x0d, 0xf0, 0x00, 0x02, 0x01, 0x0d};
	static const struct run runs[] = {
		{2, 0},
		{8, 1},
		{18, 9},
	};

	EXPECT_RUNS("module", table, 1, runs);
}

Test(linetable, decodes_each_kind_of_entry)
{
	static const struct lookup lookups[] = {
		{"short form", TABLE(0x80, 0x00), 7, 0, 7},
		{"short form, largest", TABLE(0xc8, 0x7f), 7, 0, 7},
		{"one line, same", TABLE(0xd0, 0x51, 0x7f), 7, 0, 7},
		{"one line, next", TABLE(0xd8, 0x05, 0x06), 7, 0, 8},
		{"one line, second next", TABLE(0xe0, 0x05, 0x06), 7, 0, 9},
		{"no columns, down", TABLE(0xe8, 0x06), 7, 0, 10},
		{"no columns, up", TABLE(0xe8, 0x07), 7, 0, 4},
		{"no columns, far", TABLE(0xe8, 0x50, 0x1f), 1, 0, 1001},
		{"long form", TABLE(0xf0, 0x02, 0x03, 0x49, 0x03, 0x0b), 7, 0, 8},
		{"long form, no columns", TABLE(0xf0, 0x00, 0x02, 0x00, 0x00), 7, 0, 7},
		{"none", TABLE(0xf8), 7, 0, 0},
		{"no line: the next one is relative to the last", TABLE(0xf8, 0xd8, 0x01, 0x02), 7,
		 2, 8},
		{"a negative zero", TABLE(0xe8, 0x01), 7, 0, 7},
	};

	EXPECT_LOOKUPS(lookups);
}

/* An entry covers [start, end). */
Test(linetable, entries_cover_half_open_ranges)
{
	static const struct lookup lookups[] = {
		{"first unit", TABLE(0xea, 0x00, 0xe8, 0x02), 7, 0, 7},
		{"last unit", TABLE(0xea, 0x00, 0xe8, 0x02), 7, 4, 7},
		{"first unit of the next", TABLE(0xea, 0x00, 0xe8, 0x02), 7, 6, 8},
		{"last offset of the table", TABLE(0xea, 0x00, 0xe8, 0x02), 7, 7, 8},
		{"after the table", TABLE(0xea, 0x00, 0xe8, 0x02), 7, 8, 0},
		{"far after the table", TABLE(0xea, 0x00), 7, INT32_MAX, 0},
		{"eight units", TABLE(0xef, 0x00, 0xe8, 0x02), 7, 14, 7},
		{"after eight units", TABLE(0xef, 0x00, 0xe8, 0x02), 7, 16, 8},
		{"not begun", TABLE(0xea, 0x02), 7, -2, 7},
		{"long before", TABLE(0xea, 0x02), 7, INT32_MIN, 7},
		{"not begun, no table", .first_line = 7, .offset = -2, .expected = 7},
		{"no table", .first_line = 7, .offset = 0, .expected = 0},
	};

	EXPECT_LOOKUPS(lookups);
}

/* Missing or extra bytes after the line do no harm: CPython's reader ignores them, too. */
Test(linetable, torn_entries_have_no_wrong_line)
{
	static const struct lookup lookups[] = {
		{"starts inside an entry", TABLE(0x00, 0xe8, 0x00), 7, 0, 0},
		{"an entry without its mark", TABLE(0x68, 0x02), 7, 0, 0},
		{"short form without columns", TABLE(0x80), 7, 0, 7},
		{"one line without columns", TABLE(0xd8), 7, 0, 8},
		{"one line, one column", TABLE(0xd8, 0x01), 7, 0, 8},
		{"no delta", TABLE(0xe8), 7, 0, 0},
		{"no delta, then an entry", TABLE(0xe8, 0xe8, 0x00), 7, 2, 0},
		{"half a delta", TABLE(0xe8, 0x41), 7, 0, 0},
		{"half a delta, then an entry", TABLE(0xe8, 0x41, 0xe8, 0x00), 7, 0, 0},
		{"an entry as a column", TABLE(0xd8, 0x01, 0x80, 0x00), 7, 2, 8},
		{"long form without delta", TABLE(0xf0), 7, 0, 0},
		{"long form, cut 3", TABLE(0xf0, 0x02), 7, 0, 8},
		{"long form, cut 1", TABLE(0xf0, 0x02, 0x00, 0x01), 7, 0, 8},
		{"a torn entry before", TABLE(0x80, 0xe8, 0x02), 7, 2, 8},
		{"extra bytes before", TABLE(0x80, 0x00, 0x00, 0xe8, 0x02), 7, 2, 8},
		{"torn after the line only", TABLE(0xe8, 0x00, 0xe8), 7, 0, 7},
	};

	EXPECT_LOOKUPS(lookups);
}

Test(linetable, overflowing_lines_are_unknown)
{
	static const struct lookup lookups[] = {
		{"largest delta", TABLE(0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03), 0, 0, INT32_MAX},
		{"33 bits", TABLE(0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x04), 0, 0, 0},
		{"too many chunks", TABLE(0xe8, 0x42, 0x40, 0x40, 0x40, 0x40, 0x40, 0x00), 7, 0, 0},
		{"padded with empty chunks", TABLE(0xe8, 0x42, 0x40, 0x40, 0x40, 0x40, 0x00), 7, 0,
		 8},
		{"line above INT32_MAX", TABLE(0xe8, 0x02), INT32_MAX, 0, 0},
		{"line below INT32_MIN", TABLE(0xe8, 0x03), INT32_MIN, 0, 0},
		{"one line above INT32_MAX", TABLE(0xd8, 0x00, 0x00), INT32_MAX, 0, 0},
		{"further lines above INT32_MAX", TABLE(0xf0, 0x00, 0x01, 0x01, 0x01), INT32_MAX, 0,
		 INT32_MAX},
		{"column above INT32_MAX",
		 TABLE(0xf0, 0x00, 0x00, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x03, 0x01), 1, 0, 1},
		{"lines below 0 are not known", TABLE(0xe8, 0x0b), 1, 0, 0},
		{"a line after one below 0", TABLE(0xe8, 0x0b, 0xe8, 0x0c), 1, 2, 2},
		{"first line below 0", TABLE(0xe8, 0x00), -5, -2, 0},
	};

	EXPECT_LOOKUPS(lookups);
}

struct position_lookup {
	const char *name;
	enum linetable_format format;
	uint8_t table[MAX_TABLE_BYTES];
	size_t size_bytes;
	int32_t offset;
	struct linetable_position expected; /* line, column, end line, end column */
};

/* A function whose first line is 7. */
static void expect_position(const struct position_lookup *l)
{
	uint8_t *copy = malloc(l->size_bytes + !l->size_bytes);
	struct linetable_position position;

	memcpy(copy, l->table, l->size_bytes);
	position = linetable_position(&(struct linetable){l->format, copy, l->size_bytes, 7},
				      l->offset);
	free(copy);
	cr_expect(eq(i32, position.line, l->expected.line), "%s", l->name);
	cr_expect(eq(i32, position.column, l->expected.column), "%s", l->name);
	cr_expect(eq(i32, position.end_line, l->expected.end_line), "%s", l->name);
	cr_expect(eq(i32, position.end_column, l->expected.end_column), "%s", l->name);
}

/* A truncated entry gives its line at most. */
Test(linetable, decodes_columns)
{
	static const struct position_lookup lookups[] = {
		{"short form", 0, TABLE(0x80, 0x53), 0, {7, 5, 7, 8}},
		{"short form, largest", 0, TABLE(0xc8, 0x7f), 0, {7, 79, 7, 94}},
		{"short form, cut", 0, TABLE(0xc8), 0, {7, -1, -1, -1}},
		{"one line", 0, TABLE(0xd8, 0x51, 0x7f), 0, {8, 81, 8, 127}},
		{"one line, second next", 0, TABLE(0xe0, 0x05, 0x06), 0, {9, 5, 9, 6}},
		{"one line, cut", 0, TABLE(0xd8, 0x51), 0, {8, -1, -1, -1}},
		{"no columns", 0, TABLE(0xe8, 0x06), 0, {10, -1, 10, -1}},
		{"long form", 0, TABLE(0xf0, 0x02, 0x03, 0x49, 0x03, 0x0b), 0, {8, 200, 11, 10}},
		{"long form, no columns", 0, TABLE(0xf0, 0, 2, 0, 0), 0, {7, -1, 9, -1}},
		{"long form, no end column", 0, TABLE(0xf0, 0, 2, 3), 0, {7, -1, -1, -1}},
		{"long form, the next entry as a column",
		 0,
		 TABLE(0xf0, 0, 2, 3, 0x80, 0),
		 0,
		 {7, -1, -1, -1}},
		{"long form, end line above INT32_MAX",
		 0,
		 TABLE(0xf0, 0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01, 1, 1),
		 0,
		 {7, -1, -1, -1}},
		{"long form, column above INT32_MAX",
		 0,
		 TABLE(0xf0, 0, 0, 0x40, 0x40, 0x40, 0x40, 0x40, 0x02, 1),
		 0,
		 {7, -1, -1, -1}},
		{"long form, largest column",
		 0,
		 TABLE(0xf0, 0, 0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01, 1),
		 0,
		 {7, INT32_MAX - 1, 7, 0}},
		{"none", 0, TABLE(0xf8), 0, {0, -1, -1, -1}},
		{"after an entry without a line", 0, TABLE(0xf8, 0xd8, 1, 2), 2, {8, 1, 8, 2}},
		{"not the columns of the one before",
		 0,
		 TABLE(0x80, 0x53, 0xe8, 0),
		 2,
		 {7, -1, 7, -1}},
		{"a line below 0", 0, TABLE(0xe8, 0x11), 0, {0, -1, -1, -1}},
		{"not begun", 0, TABLE(0x80, 0x53), -2, {7, -1, -1, -1}},
		{"after the table", 0, TABLE(0x80, 0x53), 2, {0, -1, -1, -1}},
		{"ranges", LINETABLE_RANGES, TABLE(4, 1, 8, 2), 2, {8, -1, -1, -1}},
		{"lnotab", LINETABLE_LNOTAB, TABLE(0, 1, 4, 1), 2, {8, -1, -1, -1}},
	};

	for (size_t i = 0; i < sizeof(lookups) / sizeof(*lookups); i++)
		expect_position(&lookups[i]);
}

/* In a truncated table an instruction has its own line or none. */
Test(linetable, truncated_table_has_no_wrong_line)
{
	static const uint8_t table[] = {0x80, 0x00, 0xe4, 0x0b, 0x0e, 0xd8, 0x08, 0x0d,
					0xd8, 0x08, 0x0e, 0xf3, 0x05, 0x03, 0x0c, 0x06,
					0xf0, 0x06, 0x00, 0x09, 0x0a, 0xf1, 0x07, 0x03,
					0x0c, 0x0a, 0xf0, 0x00, 0x03, 0x05, 0x0a};

	for (size_t size = 0; size < sizeof(table); size++) {
		for (int32_t offset = 0; offset < 32; offset += 2) {
			int32_t whole =
				find_line(LINETABLE_LOCATIONS, table, sizeof(table), 1, offset);
			int32_t cut = find_line(LINETABLE_LOCATIONS, table, size, 1, offset);

			cr_expect(cut == 0 || cut == whole, "%zu bytes, offset %d", size, offset);
		}
	}
}

Test(linetable, decodes_formats_before_3_11)
{
	/* def f(a):            3.10.13 and 3.9.18, first line 1
	       if a:
	           g(a,
	             a)
	       for i in a:
	           return i     */
	const struct lookup lookups[] = {
		{"lnotab starts at the first line", LINETABLE_LNOTAB, TABLE(0, 1, 4, 1), 1, 0, 2},
		{"lnotab's pair ends the line before", LINETABLE_LNOTAB, TABLE(0, 1, 4, 1), 1, 2,
		 2},
		{"lnotab's next line", LINETABLE_LNOTAB, TABLE(0, 1, 4, 1), 1, 4, 3},
		{"lnotab's last line continues", LINETABLE_LNOTAB, TABLE(0, 1, 4, 1), 1, 4000, 3},
		{"lnotab without a pair", LINETABLE_LNOTAB, TABLE(9), 7, 100, 7},
		{"lnotab goes back", LINETABLE_LNOTAB, TABLE(6, 4, 6, 0xfd), 1, 12, 2},
		{"lnotab in two steps", LINETABLE_LNOTAB, TABLE(255, 0, 1, 100), 1, 254, 1},
		{"lnotab after two steps", LINETABLE_LNOTAB, TABLE(255, 0, 1, 100), 1, 256, 101},
		{"lnotab's line grows in two", LINETABLE_LNOTAB, TABLE(2, 127, 0, 10), 1, 2, 138},
		{"lnotab below the first line", LINETABLE_LNOTAB, TABLE(2, 0x80), 1, 2, 0},
		{"lnotab before the code", LINETABLE_LNOTAB, TABLE(2, 5), 3, -1, 3},
		{"ranges", LINETABLE_RANGES, TABLE(4, 1, 8, 2), 1, 2, 2},
		{"ranges, the next", LINETABLE_RANGES, TABLE(4, 1, 8, 2), 1, 4, 4},
		{"ranges have an end", LINETABLE_RANGES, TABLE(4, 1, 8, 2), 1, 12, 0},
		{"ranges without a line", LINETABLE_RANGES, TABLE(4, 1, 2, 0x80, 2, 1), 1, 4, 0},
		{"ranges after one without a line", LINETABLE_RANGES, TABLE(4, 1, 2, 0x80, 2, 1), 1,
		 6, 3},
		{"ranges go back", LINETABLE_RANGES, TABLE(4, 5, 4, 0xff), 1, 4, 5},
		{"empty ranges", LINETABLE_RANGES, TABLE(0, 127, 4, 3), 1, 0, 131},
		{"ranges, torn", LINETABLE_RANGES, TABLE(4, 1, 4), 1, 4, 0},
		{"ranges, lines overflow", LINETABLE_RANGES, TABLE(4, 1), INT32_MAX, 0, 0},
	};

	EXPECT_LOOKUPS(lookups);
}
