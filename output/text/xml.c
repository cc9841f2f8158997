/* SPDX-License-Identifier: MIT */
#include "output/text/xml.h"

#include <stdint.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/utf8.h"

/* Returns the replacement of a code point; NULL if it has none. */
static const char *entity_of(uint32_t code_point)
{
	switch (code_point) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case 0xfffe:
	case 0xffff:
		return "\xef\xbf\xbd";
	default:
		return NULL;
	}
}

/* Append valid UTF-8 without control characters, with its entities. */
static void append_entities(struct text *text, const char *bytes, size_t length)
{
	size_t start = 0; /* of what is not appended yet */
	size_t step;

	for (size_t i = 0; i < length; i += step) {
		uint32_t code_point = 0;
		const char *entity;

		step = utf8_decode(bytes + i, length - i, &code_point);
		step = step ? step : 1;
		entity = entity_of(code_point);
		if (!entity)
			continue;
		text_append(text, bytes + start, i - start);
		text_puts(text, entity);
		start = i + step;
	}
	text_append(text, bytes + start, length - start);
}

void xml_append(struct text *text, const char *bytes, size_t length)
{
	struct text label = {0};

	label_append_escaped(&label, bytes, length, LABEL_DISPLAY);
	if (label.error)
		text->error = text->error ? text->error : label.error;
	else
		append_entities(text, text_string(&label), label.length);
	text_done(&label);
}

void xml_puts(struct text *text, const char *string)
{
	xml_append(text, string, strlen(string));
}
