/* SPDX-License-Identifier: MIT */
#include "output/text/text_width.h"

#include <stdint.h>
#include <string.h>

#include "output/text/utf8.h"

/* Returns the length and width of the first character of a non-empty string. */
static size_t char_length(const char *string, size_t *ret_width)
{
	uint32_t code_point = '?';
	size_t length = utf8_decode(string, strnlen(string, 4), &code_point);

	*ret_width = utf8_width(code_point);
	return length ? length : 1;
}

size_t text_width(const char *string)
{
	size_t total = 0;
	size_t width;

	for (; *string; total += width)
		string += char_length(string, &width);
	return total;
}

void text_append_head(struct text *text, const char *string, size_t max_width)
{
	size_t end = 0;
	size_t used = 0;

	if (text_width(string) <= max_width) {
		text_puts(text, string);
		return;
	}
	for (;;) {
		size_t width;
		size_t length = char_length(string + end, &width);

		if (used + width > max_width - 1)
			break;
		used += width;
		end += length;
	}
	text_append(text, string, end);
	text_puts(text, "…");
}

size_t text_append_tail(struct text *text, const char *string, size_t max_width)
{
	size_t left = text_width(string);
	size_t width;

	if (left <= max_width) {
		text_puts(text, string);
		return left;
	}
	for (; left > max_width - 1; left -= width)
		string += char_length(string, &width);
	text_puts(text, "…");
	text_puts(text, string);
	return left + 1;
}
