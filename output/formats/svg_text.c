/* SPDX-License-Identifier: MIT */
#include "output/formats/svg_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/utf8.h"
#include "output/text/xml.h"

#define MIN_COLUMNS 3
#define CUT	    ".."
#define CUT_COLUMNS 2

void svg_put_number(struct text *text, uint64_t number)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text_puts(text, ",");
		text_append(text, &digits[i], 1);
	}
}

/* Returns how many bytes of label fit in max_columns columns. */
static size_t fitting_length(const char *label, size_t max_columns)
{
	size_t size = strlen(label);
	size_t columns = 0;
	size_t length = 0;

	while (length < size) {
		uint32_t code_point = 0xfffd;
		size_t step = utf8_decode(label + length, size - length, &code_point);

		columns += utf8_width(code_point);
		if (columns > max_columns)
			break;
		length += step ? step : 1;
	}
	return length;
}

/* Append label, cut to columns with ".." at the end. */
static void put_cut(struct text *text, const char *label, size_t columns)
{
	size_t length = fitting_length(label, columns);

	if (label[length])
		length = fitting_length(label, columns > CUT_COLUMNS ? columns - CUT_COLUMNS : 0);
	xml_append(text, label, length);
	if (label[length])
		text_puts(text, CUT);
}

void svg_put_cut(struct text *text, const char *string, double room, int font_size)
{
	struct text label = {0};

	label_append_escaped(&label, string, strlen(string), LABEL_DISPLAY);
	put_cut(text, text_string(&label), (size_t)(room / (font_size * SVG_COLUMN_RATIO)));
	text->error = text->error ? text->error : label.error;
	text_done(&label);
}

void svg_put_fitting(struct text *text, const char *label, double x, double y, double room)
{
	size_t columns = room > 0 ? (size_t)(room / SVG_COLUMN_WIDTH) : 0;

	if (columns < MIN_COLUMNS)
		return;
	text_printf(text, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
	put_cut(text, label, columns);
	text_puts(text, "</text>");
}
