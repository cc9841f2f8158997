/* SPDX-License-Identifier: MIT */
#include "output/encoding/base91.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* 91 * 91 pairs of digits encode 13 bits, and one digit encodes 6. */
enum { BASE = 91, PAIR_BITS = 13, DIGIT_BITS = 6 };

/* Characters to collect before a write. They come in pairs. */
#define BUFFER_CHARACTERS 4096

struct base91 {
	FILE *out;     /* borrowed */
	uint32_t bits; /* not yet encoded; the first one is the lowest */
	unsigned int nr_bits;
	char characters[BUFFER_CHARACTERS];
	size_t nr_characters;
	int error; /* first error of out, negative errno */
};

static void characters_write(struct base91 *base91)
{
	errno = EIO; /* in case the stream fails without setting it */
	if (!base91->error && fwrite(base91->characters, 1, base91->nr_characters, base91->out) !=
				      base91->nr_characters)
		base91->error = -errno;
	base91->nr_characters = 0;
}

static void digit_put(struct base91 *base91, uint32_t digit)
{
	const uint32_t character = '#' + digit;

	base91->characters[base91->nr_characters++] = (char)(character == '<' ? '~' : character);
	if (base91->nr_characters == BUFFER_CHARACTERS)
		characters_write(base91);
}

/* Encode the first 13 bits. */
static void pair_put(struct base91 *base91)
{
	const uint32_t value = base91->bits & ((1u << PAIR_BITS) - 1);

	digit_put(base91, value % BASE);
	digit_put(base91, value / BASE);
	base91->bits >>= PAIR_BITS;
	base91->nr_bits -= PAIR_BITS;
}

/* For fopencookie(3): returns 0 with errno on failure. */
static ssize_t cookie_write(void *cookie, const char *bytes, size_t length)
{
	struct base91 *base91 = cookie;

	for (size_t i = 0; i < length; i++) {
		base91->bits |= (uint32_t)(unsigned char)bytes[i] << base91->nr_bits;
		base91->nr_bits += 8;
		if (base91->nr_bits >= PAIR_BITS)
			pair_put(base91);
	}
	if (!base91->error)
		return (ssize_t)length;
	errno = -base91->error;
	return 0;
}

static int cookie_close(void *cookie)
{
	struct base91 *base91 = cookie;
	int err;

	if (base91->nr_bits)
		digit_put(base91, base91->bits % BASE);
	if (base91->nr_bits > DIGIT_BITS)
		digit_put(base91, base91->bits / BASE);
	characters_write(base91);
	err = base91->error;
	free(base91);
	if (err)
		errno = -err;
	return err ? -1 : 0;
}

int base91_open(FILE *out, FILE **ret_stream)
{
	static const cookie_io_functions_t functions = {
		.write = cookie_write,
		.close = cookie_close,
	};
	struct base91 *base91 = calloc(1, sizeof(*base91));
	FILE *stream;

	if (!base91)
		return -ENOMEM;
	base91->out = out;
	stream = fopencookie(base91, "w", functions);
	if (!stream) {
		free(base91);
		return -ENOMEM;
	}
	*ret_stream = stream;
	return 0;
}

int base91_close(FILE *stream)
{
	if (!stream)
		return 0;
	errno = EIO; /* in case the stream fails without setting it */
	return fclose(stream) ? -errno : 0;
}
