/* SPDX-License-Identifier: MIT */
/* Texts of bounded length, and characters as in repr(). */
#include "sampler/cpython/objects/value_text.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

enum { MAX_CHARS = 5 };

Test(value_text, is_cut_at_the_limit)
{
	static const struct {
		const char *text;
		const char *expected;
		bool is_full;
	} cases[] = {
		{"", "", false},
		{"abcd", "abcd", false},
		{"abcde", "abcde", false},
		{"abcdef", "abcd…", true},
		{"abcdefghijkl", "abcd…", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char room[4 * MAX_CHARS + 1];
		struct value_text text;

		value_text_init(&text, room, MAX_CHARS);
		value_text_puts(&text, cases[i].text);
		cr_expect(eq(str, room, (char *)cases[i].expected));
		cr_expect(text.is_full == cases[i].is_full);
	}
}

Test(value_text, counts_code_points)
{
	char room[4 * MAX_CHARS + 1];
	struct value_text text;

	value_text_init(&text, room, MAX_CHARS);
	for (size_t i = 0; i < MAX_CHARS; i++)
		value_text_char(&text, 0x1f600);
	cr_expect(eq(sz, text.length, 4 * MAX_CHARS), "the text fills the buffer");
	value_text_char(&text, 'x');
	cr_expect(eq(str, room, (char *)"😀😀😀😀…"));
	cr_expect(eq(sz, strlen(room), text.length));
	value_text_char(&text, 'y');
	value_text_cut(&text);
	cr_expect(eq(str, room, (char *)"😀😀😀😀…"));
}

Test(value_text, mark_of_a_cut_can_be_forced)
{
	char room[4 * MAX_CHARS + 1];
	struct value_text text;

	value_text_init(&text, room, MAX_CHARS);
	value_text_puts(&text, "ab");
	value_text_cut(&text);
	cr_expect(eq(str, room, (char *)"ab…"));
	value_text_init(&text, room, 1);
	value_text_puts(&text, "ab");
	cr_expect(eq(str, room, (char *)"…"));
}

Test(value_text, escapes_unsafe_characters)
{
	static const struct {
		uint32_t code_point;
		char quote;
		const char *expected;
	} cases[] = {
		{'a', '\'', "a"},
		{'\'', '\'', "\\'"},
		{'\'', '"', "'"},
		{'"', 0, "\""},
		{'\\', 0, "\\\\"},
		{'\n', '\'', "\\n"},
		{0, '\'', "\\x00"},
		{0x7f, '\'', "\\x7f"},
		{0xa0, '\'', "\\xa0"},
		{0xe9, '\'', "é"},
		{0xad, '\'', "\\xad"},
		{0x202e, '\'', "\\u202e"},
		{0x2028, '\'', "\\u2028"},
		{0xd800, '\'', "\\ud800"},
		{0x4e2d, '\'', "中"},
		{0xe000, '\'', "\\ue000"},
		{0x1f600, '\'', "😀"},
		{0xe0001, '\'', "\\U000e0001"},
		{UINT32_MAX, '\'', "\\Uffffffff"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char room[4 * 20 + 1];
		struct value_text text;

		value_text_init(&text, room, 20);
		value_text_escaped(&text, cases[i].code_point, cases[i].quote);
		cr_expect(eq(str, room, (char *)cases[i].expected));
	}
}
