/* SPDX-License-Identifier: MIT */
/*
 * The text of one value under construction: UTF-8 with a limited number of characters, the last of
 * which is "…" if anything was left out. So no object gives a longer text, and writers can stop as
 * soon as it is full.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "…", which ends a text that was cut. */
#define ELLIPSIS_UTF8	    "\xe2\x80\xa6"
#define ELLIPSIS_CODE_POINT 0x2026u

/* Of one code point. */
enum { UTF8_MAX_BYTES = 4 };

/*
 * Write a code point (no surrogate, at most U+10FFFF) as UTF-8, without a terminator. Returns the
 * number of bytes.
 */
size_t utf8_encode(uint32_t code_point, char ret_bytes[UTF8_MAX_BYTES]);

struct value_text {
	char *bytes;	   /* borrowed from the caller; terminated from value_text_init() on */
	size_t length;	   /* in bytes, without the terminator */
	size_t nr_chars;   /* code points */
	size_t max_chars;  /* at least 1 */
	size_t last_bytes; /* the length without the last character that fits */
	bool is_full;	   /* it ends in "…"; nothing more is appended */
	int err;	   /* of the writer; nothing is appended until it is 0 again */
};

/* Whether nothing can be added. */
static inline bool value_text_ended(const struct value_text *text)
{
	return text->is_full || text->err;
}

/* The size of a text of max_chars in bytes, with the terminator. */
static inline size_t value_text_room(size_t max_chars)
{
	return 4 * max_chars + 1;
}

/* Begin a text in room, which has value_text_room(max_chars) bytes and is borrowed. */
void value_text_init(struct value_text *text, char *room, size_t max_chars);

/* Append a code point: no surrogate, at most U+10FFFF. */
void value_text_char(struct value_text *text, uint32_t code_point);

/* Append ASCII. */
void value_text_puts(struct value_text *text, const char *ascii);
void value_text_printf(struct value_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Append a character of a str as repr() shows it between quotes of that kind, or without quotes
 * (0): an escape unless it is printable. Unlike in repr(), characters not yet assigned in any
 * version of Unicode are printed.
 *
 * Source: unicode_repr() of CPython Objects/unicodeobject.c; str.isprintable().
 */
void value_text_escaped(struct value_text *text, uint32_t code_point, char quote);

/* The same for a byte, as in the repr() of bytes. */
void value_text_byte(struct value_text *text, uint8_t byte, char quote);

/* End the text in "…", because more follows that is not appended. */
void value_text_cut(struct value_text *text);

/* "-1.7976931348623157e+308" and shorter. */
enum { FLOAT_TEXT_BYTES = 40 };

/*
 * Format the shortest decimal that reads back as value, like repr() of a float: "1e-05", "nan",
 * "-inf". A whole number ends in ending: ".0", or "" inside a complex number. The decimal point is
 * the locale's, so LC_NUMERIC must be "C".
 *
 * Source: float_repr() of CPython Objects/floatobject.c, format_float_short() of Python/pystrtod.c.
 */
void float_format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES]);
