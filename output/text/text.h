/* SPDX-License-Identifier: MIT */
/*
 * Text that grows. The first failure is kept and everything after it does
 * nothing, so that only who uses the result has to look at .error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* All zero is an empty text. */
struct text {
	char *bytes;   /* owned, terminated; NULL while nothing was appended */
	size_t length; /* without the terminator */
	size_t max;
	int error; /* 0 or -ENOMEM */
};

/* Free what the text holds; it is empty then, without an error. Accepts NULL. */
void text_done(struct text *text);

/* Forget the contents but keep the memory, and the error. */
void text_clear(struct text *text);

/* The same of what is behind the first length bytes; there are no fewer. */
void text_cut(struct text *text, size_t length);

/* The contents, terminated, "" if there are none; valid until the next change. */
const char *text_string(const struct text *text);

/*
 * Append bytes, a string, so many spaces, or as printf(3) formats. Bytes are copied as
 * they are, NULs among them, and may not be the text's own. -ENOMEM is kept in error;
 * the contents stay then as they were.
 */
void text_append(struct text *text, const char *bytes, size_t length);
void text_puts(struct text *text, const char *string);
void text_pad(struct text *text, size_t nr_spaces);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The ending of a noun that stands behind nr: "" for one, else "s"; static. */
const char *text_plural(uint64_t nr);

/*
 * Write the contents to out, not flushed. 0; the text's own error; the stream's, as negative errno.
 */
int text_write(const struct text *text, FILE *out);
