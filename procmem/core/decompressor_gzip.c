/* SPDX-License-Identifier: MIT */
/* Decompresses gzip (RFC 1952) with zlib. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "procmem/core/decompressor.h"

/* zlib.h, inflateInit2(): the largest window, plus 16 for a gzip header and trailer. */
#define GZIP_WINDOW_BITS (15 + 16)

static void *gzip_create(void)
{
	z_stream *zlib = calloc(1, sizeof(*zlib));

	if (zlib && inflateInit2(zlib, GZIP_WINDOW_BITS) != Z_OK) {
		free(zlib);
		return NULL;
	}
	return zlib;
}

static void gzip_destroy(void *state)
{
	if (state)
		(void)inflateEnd(state);
	free(state);
}

static uInt at_most(size_t size)
{
	return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

static int gzip_step(void *state, struct decompressor_step *step)
{
	z_stream *zlib = state;

	zlib->next_in = (z_const Bytef *)step->input;
	zlib->avail_in = at_most(step->input_bytes);
	zlib->next_out = step->output;
	zlib->avail_out = at_most(step->output_bytes);
	int result = inflate(zlib, Z_NO_FLUSH);

	step->input_bytes -= (size_t)(zlib->next_in - step->input);
	step->input = zlib->next_in;
	step->output_bytes -= (size_t)(zlib->next_out - step->output);
	step->output = zlib->next_out;
	step->is_complete = result == Z_STREAM_END;
	if (step->is_complete)
		return inflateReset(zlib) == Z_OK ? 0 : -EBADMSG;
	if (result == Z_MEM_ERROR)
		return -ENOMEM;
	return result == Z_OK || result == Z_BUF_ERROR ? 0 : -EBADMSG;
}

const struct decompressor gzip_decompressor = {
	.name = "gzip",
	.magic = {0x1f, 0x8b, 8}, /* RFC 1952, 2.3.1; 8 is deflate */
	.magic_bytes = 3,
	.create = gzip_create,
	.destroy = gzip_destroy,
	.step = gzip_step,
};
