/* SPDX-License-Identifier: MIT */
/* Lines of styled text: what a view draws and a terminal shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/text/text.h"

enum screen_style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_BOLD,
	STYLE_BAR,	/* titles and headings, on a background */
	STYLE_BAR_BOLD, /* the same: the chosen part */
	STYLE_SELECTED,
	STYLE_HOT, /* large shares */
	STYLE_WARM,
	STYLE_GOOD,
	STYLE_ALERT,
	NR_SCREEN_STYLES,
};

/* A part of a line; it begins where the one before ends. */
struct screen_span {
	size_t end; /* in bytes of the text */
	enum screen_style style;
};

enum { SCREEN_MAX_SPANS = 48 };

/* Empty when all zero. The text is UTF-8 without control characters. */
struct screen_line {
	struct text text;
	size_t columns; /* its width */
	struct screen_span spans[SCREEN_MAX_SPANS];
	unsigned nr_spans;
};

struct screen {
	unsigned rows, columns;
	struct screen_line *lines; /* owned; rows of them */
};

/* Create an empty screen. Returns 0 or -ENOMEM; call screen_done() either way. */
int screen_init(struct screen *screen, unsigned rows, unsigned columns);
void screen_done(struct screen *screen);

/*
 * Append to a line, as far as it fits into the screen: a string, printf(3) output, or spaces up to
 * a column. Beyond SCREEN_MAX_SPANS the style is that of the last span. A row beyond the screen is
 * ignored. Errors are kept in the texts.
 */
void screen_puts(struct screen *screen, unsigned row, enum screen_style style, const char *string);
void screen_printf(struct screen *screen, unsigned row, enum screen_style style, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));
void screen_pad(struct screen *screen, unsigned row, enum screen_style style, size_t column);

/* Returns the width of a line so far. */
size_t screen_used(const struct screen *screen, unsigned row);

/* Append a string that comes from the target, escaped, in at most max_columns. */
void screen_name(struct screen *screen, unsigned row, enum screen_style style, const char *string,
		 size_t max_columns);

/* The same, but of a longer one the end is shown. */
void screen_name_tail(struct screen *screen, unsigned row, enum screen_style style,
		      const char *string, size_t max_columns);
