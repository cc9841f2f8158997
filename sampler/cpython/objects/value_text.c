/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/value_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "sampler/cpython/objects/strings.h"

#define ELLIPSIS 0x2026u

/* What is added by value_text_printf() at a time is shorter. */
enum { PIECE_MAX_BYTES = 128 };

void value_text_init(struct value_text *text, char *room, size_t max_chars)
{
	*text = (struct value_text){.bytes = room, .max_chars = max_chars};
	room[0] = '\0';
}

/* Append the UTF-8 of a code point, for which there is room. */
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
	append(text, ELLIPSIS);
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
 * What is assigned and not printable beyond ASCII: Cc, Cf, Co, Cs, Zl, Zp, and Zs but the space.
 * Source: UnicodeData.txt 15.0.
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
