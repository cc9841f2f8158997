/* SPDX-License-Identifier: MIT */
#include "output/text/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN_BYTES 64

void text_done(struct text *text)
{
	if (!text)
		return;
	free(text->bytes);
	*text = (struct text){0};
}

void text_cut(struct text *text, size_t length)
{
	text->length = length;
	if (text->bytes)
		text->bytes[length] = '\0';
}

void text_clear(struct text *text)
{
	text_cut(text, 0);
}

const char *text_string(const struct text *text)
{
	return text->bytes ? text->bytes : "";
}

/* Make room for length more bytes and the terminator. */
static bool text_reserve(struct text *text, size_t length)
{
	size_t max = text->max ? text->max : MIN_BYTES;
	size_t needed;
	char *bytes;

	if (text->error)
		return false;
	if (__builtin_add_overflow(text->length, length, &needed) || needed >= SIZE_MAX / 2) {
		text->error = -ENOMEM;
		return false;
	}
	if (needed < text->max)
		return true;
	while (max <= needed)
		max *= 2;
	bytes = realloc(text->bytes, max);
	if (!bytes) {
		text->error = -ENOMEM;
		return false;
	}
	text->bytes = bytes;
	text->max = max;
	return true;
}

void text_append(struct text *text, const char *bytes, size_t length)
{
	if (!text_reserve(text, length))
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

void text_puts(struct text *text, const char *string)
{
	text_append(text, string, strlen(string));
}

void text_pad(struct text *text, size_t nr_spaces)
{
	if (!text_reserve(text, nr_spaces))
		return;
	memset(text->bytes + text->length, ' ', nr_spaces);
	text->length += nr_spaces;
	text->bytes[text->length] = '\0';
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list args;
	va_list again;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	if (length < 0)
		text->error = text->error ? text->error : -ENOMEM;
	else if (text_reserve(text, (size_t)length))
		text->length += (size_t)vsnprintf(text->bytes + text->length, (size_t)length + 1,
						  format, again);
	va_end(again);
	va_end(args);
}

const char *text_plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

int text_write(const struct text *text, FILE *out)
{
	if (text->error)
		return text->error;
	errno = EIO; /* in case the stream fails without setting it */
	if (text->length && fwrite(text->bytes, 1, text->length, out) != text->length)
		return -errno;
	return 0;
}
