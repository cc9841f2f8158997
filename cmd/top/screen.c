/* SPDX-License-Identifier: MIT */
#include "cmd/top/screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/profile/label.h"
#include "output/text/text_width.h"

int screen_init(struct screen *screen, unsigned rows, unsigned columns)
{
	*screen = (struct screen){
		.rows = rows,
		.columns = columns,
		.lines = calloc((size_t)rows + 1, sizeof(*screen->lines)),
	};
	return screen->lines ? 0 : -ENOMEM;
}

void screen_done(struct screen *screen)
{
	for (unsigned i = 0; screen->lines && i < screen->rows; i++)
		text_done(&screen->lines[i].text);
	free(screen->lines);
	*screen = (struct screen){.rows = 0};
}

/* End a span at the end of the text. */
static void mark(struct screen_line *line, enum screen_style style)
{
	struct screen_span *last = line->nr_spans ? &line->spans[line->nr_spans - 1] : NULL;

	if (last && (last->style == style || line->nr_spans == SCREEN_MAX_SPANS))
		last->end = line->text.length;
	else
		line->spans[line->nr_spans++] = (struct screen_span){line->text.length, style};
}

size_t screen_used(const struct screen *screen, unsigned row)
{
	return row < screen->rows ? screen->lines[row].columns : 0;
}

void screen_puts(struct screen *screen, unsigned row, enum screen_style style, const char *string)
{
	struct screen_line *line;
	size_t left, before;

	if (row >= screen->rows || !*string)
		return;
	line = &screen->lines[row];
	left = screen->columns - line->columns;
	before = line->text.length;
	if (!left)
		return;
	text_append_head(&line->text, string, left);
	/* A wide character may not fit into the last column. */
	line->columns += text_width(text_string(&line->text) + before);
	mark(line, style);
}

void screen_printf(struct screen *screen, unsigned row, enum screen_style style, const char *format,
		   ...)
{
	char string[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(string, sizeof(string), format, arguments);
	va_end(arguments);
	screen_puts(screen, row, style, string);
}

void screen_pad(struct screen *screen, unsigned row, enum screen_style style, size_t column)
{
	struct screen_line *line;

	if (row >= screen->rows)
		return;
	line = &screen->lines[row];
	if (column > screen->columns)
		column = screen->columns;
	if (line->columns >= column)
		return;
	text_pad(&line->text, column - line->columns);
	line->columns = column;
	mark(line, style);
}

/* Append an escaped string, cut to its head or tail of max_columns. */
static void put_name(struct screen *screen, unsigned row, enum screen_style style,
		     const char *string, size_t max_columns, bool is_tail)
{
	struct text escaped = {0}, cut = {0};

	if (!max_columns)
		return;
	label_append_string(&escaped, string);
	if (is_tail)
		(void)text_append_tail(&cut, text_string(&escaped), max_columns);
	else
		text_append_head(&cut, text_string(&escaped), max_columns);
	screen_puts(screen, row, style, text_string(&cut));
	text_done(&cut);
	text_done(&escaped);
}

void screen_name(struct screen *screen, unsigned row, enum screen_style style, const char *string,
		 size_t max_columns)
{
	put_name(screen, row, style, string, max_columns, false);
}

void screen_name_tail(struct screen *screen, unsigned row, enum screen_style style,
		      const char *string, size_t max_columns)
{
	put_name(screen, row, style, string, max_columns, true);
}
