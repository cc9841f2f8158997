/* SPDX-License-Identifier: MIT */
#include "output/text/utf8.h"

#define CODE_POINT_MAX 0x10ffff

struct code_range {
	uint32_t first;
	uint32_t last;
};

static bool in_ranges(uint32_t code_point, const struct code_range *ranges, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (code_point >= ranges[i].first && code_point <= ranges[i].last)
			return true;
	}
	return false;
}

size_t utf8_decode(const char *bytes, size_t size, uint32_t *ret_code_point)
{
	/* Smallest code point of each length; smaller ones are overlong. */
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *byte = (const unsigned char *)bytes;
	uint32_t code_point = byte[0];
	size_t length;

	if (byte[0] < 0x80)
		length = 1;
	else if (byte[0] >= 0xc2 && byte[0] <= 0xdf)
		length = 2;
	else if ((byte[0] & 0xf0) == 0xe0)
		length = 3;
	else if (byte[0] >= 0xf0 && byte[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (length > size)
		return 0;

	if (length > 1)
		code_point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		code_point = code_point << 6 | (byte[i] & 0x3f);
	}
	if (code_point < smallest[length] || code_point > CODE_POINT_MAX ||
	    (code_point >= 0xd800 && code_point <= 0xdfff))
		return 0;
	*ret_code_point = code_point;
	return length;
}

bool utf8_is_control(uint32_t code_point)
{
	static const struct code_range controls[] = {
		{0x00, 0x1f},	  {0x7f, 0x9f},	    {0x061c, 0x061c},
		{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
	};

	return in_ranges(code_point, controls, sizeof(controls) / sizeof(controls[0]));
}

unsigned utf8_width(uint32_t code_point)
{
	static const struct code_range zero[] = {
		{0x0300, 0x036f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d},
		{0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
	};
	static const struct code_range wide[] = {
		{0x1100, 0x115f},   {0x2e80, 0x303e},	{0x3041, 0x4dbf},   {0x4e00, 0xa4cf},
		{0xa960, 0xa97c},   {0xac00, 0xd7a3},	{0xf900, 0xfaff},   {0xfe30, 0xfe6f},
		{0xff01, 0xff60},   {0xffe0, 0xffe6},	{0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
		{0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
	};

	if (code_point < 0x300)
		return 1;
	if (in_ranges(code_point, zero, sizeof(zero) / sizeof(zero[0])))
		return 0;
	return in_ranges(code_point, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}
