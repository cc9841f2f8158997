/* SPDX-License-Identifier: MIT */
/*
 * The text of one value while it is written: UTF-8 of so many characters at most, the last
 * of which is "…" where there would be more. Whatever an object holds, its text is no longer,
 * and who writes can stop as soon as it is full.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Write a code point, which is no surrogate and at most U+10FFFF, as UTF-8. How many bytes it
 * has; they are not terminated.
 */
enum { UTF8_MAX_BYTES = 4 };
size_t utf8_encode(uint32_t code_point, char ret_bytes[UTF8_MAX_BYTES]);

struct value_text {
	char *bytes;	   /* borrowed: the caller's room, terminated from value_text_init() on */
	size_t length;	   /* in bytes, without the terminator */
	size_t nr_chars;   /* code points */
	size_t max_chars;  /* at least 1 */
	size_t last_bytes; /* the length without the last character there is room for */
	bool is_full;	   /* it ends in "…", and nothing more is added */
	int err;	   /* who writes could not read on: until it is 0 again nothing is added */
};

/* Whether nothing can be added. */
static inline bool value_text_ended(const struct value_text *text)
{
	return text->is_full || text->err;
}

/* How many bytes a text of max_chars may take, its terminator included. */
static inline size_t value_text_room(size_t max_chars)
{
	return 4 * max_chars + 1;
}

/* Begin a text in room, which has value_text_room(max_chars) bytes and is borrowed. */
void value_text_init(struct value_text *text, char *room, size_t max_chars);

/* Add a code point, which is one that UTF-8 can have: no surrogate, at most U+10FFFF. */
void value_text_char(struct value_text *text, uint32_t code_point);

/* Add ASCII. */
void value_text_puts(struct value_text *text, const char *ascii);
void value_text_printf(struct value_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Add a character of a str as repr() shows it between quotes of that kind, or without any
 * (0): what is not printable as an escape. What no version of Unicode has assigned yet is
 * printed, other than by repr().
 *
 * Source: unicode_repr() of CPython Objects/unicodeobject.c; str.isprintable().
 */
void value_text_escaped(struct value_text *text, uint32_t code_point, char quote);

/* The same of a byte, as in the repr() of bytes. */
void value_text_byte(struct value_text *text, uint8_t byte, char quote);

/* There is more that is not added: end in "…". */
void value_text_cut(struct value_text *text);

/* "-1.7976931348623157e+308" and shorter. */
enum { FLOAT_TEXT_BYTES = 40 };

/*
 * The shortest decimal that reads back as value, as repr() of a float writes it: "1e-05", "nan",
 * "-inf"; a whole number ends in ending: ".0", or "" as complex numbers have it. The decimal point
 * is the locale's, so LC_NUMERIC has to stay "C".
 *
 * Source: float_repr() of CPython Objects/floatobject.c, format_float_short() of
 * Python/pystrtod.c.
 */
void float_format(double value, const char *ending, char ret_text[FLOAT_TEXT_BYTES]);
