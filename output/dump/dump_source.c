/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_source.h"

#include <errno.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/text_width.h"

/*
 * Find the part of a line that the frame executes. Returns false if it is unknown or the whole
 * line.
 */
static bool find_marked(const struct stripped_line *stripped, int32_t line,
			const struct frame_detail *detail, size_t *ret_start, size_t *ret_end)
{
	size_t start, end;

	if (detail->column < 0 || detail->end_column < 0 || detail->end_line < line)
		return false;
	start = (size_t)detail->column;
	end = detail->end_line == line ? (size_t)detail->end_column : stripped->end;
	if (end > stripped->end)
		end = stripped->end;
	if (start < stripped->start)
		start = stripped->start;
	*ret_start = start;
	*ret_end = end;
	return start < end && (start > stripped->start || end < stripped->end);
}

/* Returns the width of a part of a line as printed. */
static size_t shown_width(struct text *scratch, const char *bytes, size_t length)
{
	text_clear(scratch);
	label_append_escaped(scratch, bytes, length, LABEL_DISPLAY);
	return text_width(text_string(scratch));
}

static void append_marks(struct text *text, struct text *scratch,
			 const struct stripped_line *stripped, size_t start, size_t end)
{
	const char *line = stripped->line;

	text_pad(text, 4 + shown_width(scratch, line + stripped->start, start - stripped->start));
	for (size_t n = shown_width(scratch, line + start, end - start); n > 0; n--)
		text_puts(text, "^");
	text_puts(text, "\n");
}

void dump_source_append(struct text *text, struct source_lines *lines, const struct frame *frame,
			const struct frame_detail *detail)
{
	struct text scratch = {0};
	struct stripped_line stripped;
	size_t start, end;
	const char *line;
	int err = source_lines_get(lines, frame->function->path, frame->line, &line);

	if (err == -EAGAIN && lines->newer)
		text_printf(text, "    (source is newer than %s)\n", lines->newer);
	if (err == -ENOMEM)
		text->error = err;
	if (err)
		return;
	stripped = stripped_line_of(line);
	if (stripped.start == stripped.end)
		return;
	text_pad(text, 4);
	label_append_escaped(text, line + stripped.start, stripped.end - stripped.start,
			     LABEL_DISPLAY);
	text_puts(text, "\n");
	if (find_marked(&stripped, frame->line, detail, &start, &end))
		append_marks(text, &scratch, &stripped, start, end);
	if (scratch.error)
		text->error = scratch.error;
	text_done(&scratch);
}
