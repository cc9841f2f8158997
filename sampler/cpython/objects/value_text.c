/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/value_text.h"

#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit on what one value_text_printf() appends. */
enum { PIECE_MAX_BYTES = 128 };

size_t utf8_encode(uint32_t code_point, char ret_bytes[UTF8_MAX_BYTES])
{
	const size_t nr_bytes = code_point < 0x80      ? 1
				: code_point < 0x800   ? 2
				: code_point < 0x10000 ? 3
						       : 4;
	/* The first byte has as many leading ones as there are bytes. */
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = nr_bytes - 1; i > 0; i--) {
		ret_bytes[i] = (char)(0x80 | (code_point & 0x3f));
		code_point >>= 6;
	}
	ret_bytes[0] = (char)(marks[nr_bytes] | code_point);
	return nr_bytes;
}

void value_text_init(struct value_text *text, char *room, size_t max_chars)
{
	*text = (struct value_text){.bytes = room, .max_chars = max_chars};
	room[0] = '\0';
}

/* Append a code point as UTF-8; there is room for it. */
static void append(struct value_text *text, uint32_t code_point)
{
	text->length += utf8_encode(code_point, text->bytes + text->length);
	text->bytes[text->length] = '\0';
	text->nr_chars++;
}

void value_text_cut(struct value_text *text)
{
	if (value_text_ended(text))
		return;
	if (text->nr_chars == text->max_chars) {
		text->length = text->last_bytes;
		text->nr_chars--;
	}
	append(text, ELLIPSIS_CODE_POINT);
	text->is_full = true;
}

void value_text_char(struct value_text *text, uint32_t code_point)
{
	if (text->nr_chars == text->max_chars)
		value_text_cut(text);
	if (value_text_ended(text))
		return;
	if (text->nr_chars + 1 == text->max_chars)
		text->last_bytes = text->length;
	append(text, code_point);
}

void value_text_puts(struct value_text *text, const char *ascii)
{
	for (; *ascii && !value_text_ended(text); ascii++)
		value_text_char(text, (uint8_t)*ascii);
}

void value_text_printf(struct value_text *text, const char *format, ...)
{
	char piece[PIECE_MAX_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	value_text_puts(text, piece);
}

struct range {
	uint32_t first, last;
};

/*
 * Assigned characters beyond ASCII that are not printable: Cc, Cf, Co, Cs, Zl, Zp, and Zs except
 * the space. Source: UnicodeData.txt 15.0.
 */
static const struct range unprintable[] = {
	{0x7f, 0xa0},	    {0xad, 0xad},	{0x600, 0x605},	    {0x61c, 0x61c},
	{0x6dd, 0x6dd},	    {0x70f, 0x70f},	{0x890, 0x891},	    {0x8e2, 0x8e2},
	{0x1680, 0x1680},   {0x180e, 0x180e},	{0x2000, 0x200f},   {0x2028, 0x202f},
	{0x205f, 0x206f},   {0x3000, 0x3000},	{0xd800, 0xf8ff},   {0xfeff, 0xfeff},
	{0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff}, {0xf0000, UINT32_MAX},
};

static bool is_printable(uint32_t c)
{
	if (c < 0x7f)
		return c >= 0x20;
	for (size_t i = 0; i < sizeof(unprintable) / sizeof(*unprintable); i++)
		if (c >= unprintable[i].first && c <= unprintable[i].last)
			return false;
	return true;
}

void value_text_escaped(struct value_text *text, uint32_t code_point, char quote)
{
	const int letter = code_point == '\t'	? 't'
			   : code_point == '\n' ? 'n'
			   : code_point == '\r' ? 'r'
						: 0;

	if (letter)
		value_text_printf(text, "\\%c", letter);
	else if (code_point == '\\' || (quote && code_point == (uint8_t)quote))
		value_text_printf(text, "\\%c", (char)code_point);
	else if (is_printable(code_point))
		value_text_char(text, code_point);
	else if (code_point <= UINT8_MAX)
		value_text_printf(text, "\\x%02x", code_point);
	else if (code_point <= UINT16_MAX)
		value_text_printf(text, "\\u%04x", code_point);
	else
		value_text_printf(text, "\\U%08x", code_point);
}

void value_text_byte(struct value_text *text, uint8_t byte, char quote)
{
	if (byte < 0x80)
		value_text_escaped(text, byte, quote);
	else
		value_text_printf(text, "\\x%02x", byte);
}

/* Floats. */

/* Enough digits to identify any double. */
enum { MAX_DIGITS = 17 };

/* repr() writes an exponent from FIRST_EXPONENT on, and down from LAST_EXPONENT. */
enum { FIRST_EXPONENT = 16, LAST_EXPONENT = -5 };

/* Print value with that many digits after the point, rounded in that direction. */
static void print(bool has_exponent, int precision, double value, int rounding,
		  char ret_text[FLOAT_TEXT_BYTES])
{
	(void)fesetround(rounding);
	(void)snprintf(ret_text, FLOAT_TEXT_BYTES, has_exponent ? "%.*e" : "%.*f", precision,
		       value);
	(void)fesetround(FE_TONEAREST);
}

/*
 * Find the fewest digits after the first one that identify value, and how to round them;
 * *ret_exponent is the exponent of the first digit. Below a power of two, doubles are twice as
 * dense as above it, so the nearest decimal with that many digits may belong to another double
 * while the next higher one does not. So both are tried.
 */
static int find_shortest(double value, int *ret_rounding, int *ret_exponent)
{
	static const int roundings[] = {FE_TONEAREST, FE_UPWARD};
	char text[FLOAT_TEXT_BYTES];
	int precision = 0;

	for (int i = 0;; i++) {
		*ret_rounding = roundings[i % 2];
		precision = i / 2;
		print(true, precision, value, *ret_rounding, text);
		if (strtod(text, NULL) == value || precision == MAX_DIGITS - 1)
			break;
	}
	*ret_exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	return precision;
}

void float_format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES])
{
	int precision, rounding, exponent;

	if (isnan(value)) {
		(void)stpcpy(ret_text, "nan");
		return;
	}
	if (signbit(value))
		*ret_text++ = '-';
	value = fabs(value);
	if (isinf(value)) {
		(void)stpcpy(ret_text, "inf");
		return;
	}
	precision = find_shortest(value, &rounding, &exponent);
	if (exponent <= LAST_EXPONENT || exponent >= FIRST_EXPONENT) {
		print(true, precision, value, rounding, ret_text);
	} else if (precision > exponent) {
		print(false, precision - exponent, value, rounding, ret_text);
	} else {
		print(false, 0, value, rounding, ret_text);
		(void)stpcpy(ret_text + strlen(ret_text), ending);
	}
}
