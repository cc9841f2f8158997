/* SPDX-License-Identifier: MIT */
/*
 * A growing text. It keeps the first error, and further calls do nothing, so only the user of the
 * result needs to check error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Empty when all zero. */
struct text {
	char *bytes;   /* owned, terminated; NULL until the first append */
	size_t length; /* without the terminator */
	size_t max;
	int error; /* 0 or -ENOMEM */
};

/* Free the bytes and empty the text, error included. Accepts NULL. */
void text_done(struct text *text);

/* Remove the contents but keep the memory and the error. */
void text_clear(struct text *text);

/* Keep only the first length bytes of at least that many. */
void text_cut(struct text *text, size_t length);

/* Returns the terminated contents, "" if there are none; valid until the next change. */
const char *text_string(const struct text *text);

/*
 * Append bytes, a string, spaces, or printf(3) output. Bytes are copied unchanged, including NUL,
 * and must not be the text's own. -ENOMEM is kept in error and leaves the contents unchanged.
 */
void text_append(struct text *text, const char *bytes, size_t length);
void text_puts(struct text *text, const char *string);
void text_pad(struct text *text, size_t nr_spaces);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the plural ending for nr things: "" for one, else "s"; static. */
const char *text_plural(uint64_t nr);

/* Returns the 32-bit FNV-1a hash of a string. */
static inline uint32_t text_hash(const char *string)
{
	uint32_t hash = 0x811c9dc5u;

	for (; *string; string++)
		hash = (hash ^ (unsigned char)*string) * 0x01000193u;
	return hash;
}

/*
 * Write the contents to out, without flushing. Returns 0; the text's own error; the stream's as
 * negative errno.
 */
int text_write(const struct text *text, FILE *out);
