/* SPDX-License-Identifier: MIT */
#include "output/base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Characters that are collected before they are written; four make a group. */
#define BUFFER_CHARACTERS 4096

struct base64 {
	FILE *out;	  /* borrowed */
	uint32_t pending; /* the bytes of the group that is not whole yet */
	unsigned nr_pending;
	char characters[BUFFER_CHARACTERS];
	size_t nr_characters;
	int error; /* the first one of out, negative errno */
};

static void characters_write(struct base64 *base64)
{
	errno = EIO; /* should the stream fail without saying why */
	if (!base64->error && fwrite(base64->characters, 1, base64->nr_characters, base64->out) !=
				      base64->nr_characters)
		base64->error = -errno;
	base64->nr_characters = 0;
}

/* Encode a group of three bytes, of which nr are there and the others zero. */
static void group_encode(struct base64 *base64, uint32_t group, unsigned nr)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *character = base64->characters + base64->nr_characters;

	character[0] = alphabet[group >> 18];
	character[1] = alphabet[group >> 12 & 0x3f];
	character[2] = '=';
	character[3] = '=';
	if (nr > 1)
		character[2] = alphabet[group >> 6 & 0x3f];
	if (nr > 2)
		character[3] = alphabet[group & 0x3f];
	base64->nr_characters += 4;
	if (base64->nr_characters == BUFFER_CHARACTERS)
		characters_write(base64);
}

/* fopencookie(3): 0 with errno is a failure. */
static ssize_t cookie_write(void *cookie, const char *bytes, size_t length)
{
	struct base64 *base64 = cookie;

	for (size_t i = 0; i < length; i++) {
		base64->pending = base64->pending << 8 | (unsigned char)bytes[i];
		if (++base64->nr_pending == 3) {
			group_encode(base64, base64->pending, 3);
			base64->pending = 0;
			base64->nr_pending = 0;
		}
	}
	if (!base64->error)
		return (ssize_t)length;
	errno = -base64->error;
	return 0;
}

static int cookie_close(void *cookie)
{
	struct base64 *base64 = cookie;
	unsigned nr = base64->nr_pending;
	int err;

	if (nr)
		group_encode(base64, base64->pending << (8 * (3 - nr)), nr);
	characters_write(base64);
	err = base64->error;
	free(base64);
	if (err)
		errno = -err;
	return err ? -1 : 0;
}

int base64_open(FILE *out, FILE **ret_stream)
{
	static const cookie_io_functions_t functions = {
		.write = cookie_write,
		.close = cookie_close,
	};
	struct base64 *base64 = calloc(1, sizeof(*base64));
	FILE *stream;

	if (!base64)
		return -ENOMEM;
	base64->out = out;
	stream = fopencookie(base64, "w", functions);
	if (!stream) {
		free(base64);
		return -ENOMEM;
	}
	*ret_stream = stream;
	return 0;
}

int base64_close(FILE *stream)
{
	if (!stream)
		return 0;
	errno = EIO; /* should the stream fail without saying why */
	return fclose(stream) ? -errno : 0;
}
