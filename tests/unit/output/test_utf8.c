/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "output/text/utf8.h"

static size_t encode(uint32_t code_point, char bytes[4])
{
	if (code_point < 0x80) {
		bytes[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		bytes[0] = (char)(0xc0 | code_point >> 6);
		bytes[1] = (char)(0x80 | (code_point & 0x3f));
		return 2;
	}
	if (code_point < 0x10000) {
		bytes[0] = (char)(0xe0 | code_point >> 12);
		bytes[1] = (char)(0x80 | (code_point >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code_point & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | code_point >> 18);
	bytes[1] = (char)(0x80 | (code_point >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (code_point >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (code_point & 0x3f));
	return 4;
}

Test(utf8, accepts_every_code_point)
{
	for (uint32_t code_point = 0; code_point < 0x120000; code_point++) {
		bool valid = code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
		char bytes[4];
		size_t length = encode(code_point, bytes);
		uint32_t decoded = 0;

		cr_assert(utf8_decode(bytes, length, &decoded) == (valid ? length : 0), "U+%04X",
			  code_point);
		cr_assert(decoded == (valid ? code_point : 0), "U+%04X", code_point);
		cr_assert(length == 1 || utf8_decode(bytes, length - 1, &decoded) == 0, "U+%04X",
			  code_point);
	}
}

/* The number of accepted sequences equals the number of code points, so no others are accepted. */
Test(utf8, refuses_all_else_up_to_three_bytes)
{
	size_t nr[4] = {0};

	for (uint32_t sequence = 0; sequence < 1u << 24; sequence++) {
		const char bytes[3] = {(char)(sequence >> 16), (char)(sequence >> 8),
				       (char)sequence};
		uint32_t code_point;

		nr[utf8_decode(bytes, 3, &code_point)]++;
	}
	cr_expect(eq(sz, nr[1], 0x80u << 16));
	cr_expect(eq(sz, nr[2], 0x780u << 8));
	cr_expect(eq(sz, nr[3], 0x10000 - 0x800 - 0x800));
}

Test(utf8, refuses_invalid_four_byte_sequences)
{
	static const char bad[][5] = {
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80",
		"\xf0\x90\x80\x7f", "\xf0\x90\xc0\x80", "\xff\xff\xff\xff",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t code_point;

		cr_expect(eq(sz, utf8_decode(bad[i], 4, &code_point), 0), "%zu", i);
	}
}

Test(utf8, knows_controls_and_widths)
{
	static const struct {
		uint32_t code_point;
		bool control;
		unsigned width;
	} cases[] = {
		{'a', false, 1},    {'\n', true, 1},	{0x7f, true, 1},     {0x85, true, 1},
		{0xa0, false, 1},   {0x202e, true, 1},	{0x2066, true, 1},   {0xe9, false, 1},
		{0x301, false, 0},  {0x4e2d, false, 2}, {0x1f600, false, 2}, {0x2026, false, 1},
		{0xfe0f, false, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t code_point = cases[i].code_point;

		cr_expect(utf8_is_control(code_point) == cases[i].control, "U+%04X", code_point);
		cr_expect(utf8_width(code_point) == cases[i].width, "U+%04X", code_point);
	}
}
