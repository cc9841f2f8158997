/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "output/encoding/byte_buffer.h"
#include "procmem/byte_cursor.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const uint64_t numbers[] = {
	0,
	1,
	127,
	128,
	16383,
	16384,
	1234,
	1u << 31,
	UINT32_MAX,
	INT64_MAX,
	(uint64_t)1 << 63,
	UINT64_MAX,
};

Test(byte_buffer, reads_what_was_written)
{
	struct byte_buffer buffer = {0};
	struct byte_cursor cursor;

	for (size_t i = 0; i < NR(numbers); i++) {
		byte_buffer_uint(&buffer, numbers[i]);
		byte_buffer_int(&buffer, (int64_t)numbers[i]);
		byte_buffer_int(&buffer, -(int64_t)(numbers[i] / 2));
		byte_buffer_fixed(&buffer, numbers[i], 8);
	}
	cr_assert(not(buffer.failed));
	cursor = (struct byte_cursor){.at = buffer.bytes, .end = buffer.bytes + buffer.nr};
	for (size_t i = 0; i < NR(numbers); i++) {
		cr_assert(eq(u64, byte_cursor_uint(&cursor), numbers[i]));
		cr_assert(eq(i64, byte_cursor_int(&cursor), (int64_t)numbers[i]));
		cr_assert(eq(i64, byte_cursor_int(&cursor), -(int64_t)(numbers[i] / 2)));
		cr_assert(eq(u64, byte_cursor_fixed(&cursor, 8), numbers[i]));
	}
	cr_assert(byte_cursor_is_at_end(&cursor));
	cr_assert(not(cursor.is_bad));
	byte_buffer_done(&buffer);
}

Test(byte_buffer, writes_the_bytes_of_the_format)
{
	static const struct {
		int64_t number;
		uint8_t bytes[2];
		uint32_t nr;
	} cases[] = {
		{0, {0}, 1}, {-1, {1}, 1}, {1, {2}, 1}, {-2, {3}, 1}, {64, {0x80, 1}, 2},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct byte_buffer buffer = {0};

		byte_buffer_int(&buffer, cases[i].number);
		cr_assert(eq(u32, buffer.nr, cases[i].nr));
		cr_assert(eq(int, memcmp(buffer.bytes, cases[i].bytes, buffer.nr), 0));
		byte_buffer_done(&buffer);
	}
}

Test(byte_buffer, cuts_strings_between_characters)
{
	static const struct {
		const char *string;
		uint32_t max_bytes, nr;
	} cases[] = {
		{"", 0, 0}, {"abc", 3, 3}, {"abc", 2, 2}, {"aé", 2, 1}, {"aé", 3, 3}, {"😀", 3, 0},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct byte_buffer buffer = {0};

		byte_buffer_string(&buffer, cases[i].string, cases[i].max_bytes);
		cr_assert(eq(u32, buffer.nr, cases[i].nr + 1));
		cr_assert(eq(u8, buffer.bytes[0], (uint8_t)cases[i].nr));
		cr_assert(eq(int, memcmp(buffer.bytes + 1, cases[i].string, cases[i].nr), 0));
		byte_buffer_done(&buffer);
	}
}

Test(byte_buffer, refuses_endless_numbers)
{
	static const struct {
		uint8_t bytes[12];
		uint32_t nr;
		bool is_bad;
	} cases[] = {
		{{0}, 0, true},
		{{0x80}, 1, true},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 10, false},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, 10, true},
		{{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 11, true},
		{{0x80, 0}, 2, false},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct byte_cursor cursor = {.at = cases[i].bytes,
					     .end = cases[i].bytes + cases[i].nr};
		const uint64_t number = byte_cursor_uint(&cursor);

		cr_assert(eq(int, cursor.is_bad, cases[i].is_bad));
		cr_assert(byte_cursor_is_at_end(&cursor));
		cr_assert(not(cursor.is_bad && number));
	}
}

Test(byte_buffer, splits_within_bounds)
{
	const uint8_t bytes[] = {1, 2, 3};
	struct byte_cursor cursor = {.at = bytes, .end = bytes + sizeof(bytes)};
	struct byte_cursor part = byte_cursor_split(&cursor, 2);

	cr_assert(eq(u64, byte_cursor_fixed(&part, 2), 0x0201));
	cr_assert(byte_cursor_is_at_end(&part));
	cr_assert(not(part.is_bad));
	part = byte_cursor_split(&cursor, UINT64_MAX);
	cr_assert(part.is_bad && cursor.is_bad);
	cr_assert(eq(u64, byte_cursor_uint(&cursor), 0));
}

Test(byte_buffer, reads_dwarf_signed_leb128)
{
	static const struct {
		uint8_t bytes[12];
		uint8_t nr;
		int64_t number;
		bool is_bad;
	} cases[] = {
		/* Examples of DWARF 5, figure 40. */
		{{0x02}, 1, 2, false},
		{{0x7e}, 1, -2, false},
		{{0xff, 0x00}, 2, 127, false},
		{{0x81, 0x7f}, 2, -127, false},
		{{0x80, 0x01}, 2, 128, false},
		{{0x80, 0x7f}, 2, -128, false},
		/* The minimum; a longer encoding than necessary. */
		{{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f},
		 10,
		 INT64_MIN,
		 false},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 11, -1, false},
		{{0x80}, 1, 0, true},
		{{0}, 0, 0, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct byte_cursor cursor = {.at = cases[i].bytes,
					     .end = cases[i].bytes + cases[i].nr};

		cr_expect(eq(i64, byte_cursor_signed_leb(&cursor), cases[i].number), "%zu", i);
		cr_expect(eq(int, cursor.is_bad, cases[i].is_bad), "%zu", i);
		cr_expect(byte_cursor_is_at_end(&cursor), "%zu", i);
	}
}
