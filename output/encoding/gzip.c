/* SPDX-License-Identifier: MIT */
#include "output/encoding/gzip.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

/* zlib.h, deflateInit2(): the largest window, plus 16 for a gzip header and trailer. */
#define GZIP_WINDOW_BITS  (15 + 16)
#define DEFAULT_MEM_LEVEL 8

/* The fastest level with lazy matching: deflate.c, configuration_table. */
#define FAST_LEVEL 4

/* Size of the input and of the output buffer. */
#define BUFFER_BYTES 65536u

struct gzip {
	FILE *out; /* borrowed */
	z_stream zlib;
	int error;		  /* first error of out, negative errno */
	char input[BUFFER_BYTES]; /* stdio's buffer */
	unsigned char compressed[BUFFER_BYTES];
};

/* Write zlib's output and empty its buffer. */
static void compressed_write(struct gzip *gzip)
{
	size_t length = sizeof(gzip->compressed) - gzip->zlib.avail_out;

	errno = EIO; /* in case the stream fails without setting it */
	if (!gzip->error && fwrite(gzip->compressed, 1, length, gzip->out) != length)
		gzip->error = -errno;
	gzip->zlib.next_out = gzip->compressed;
	gzip->zlib.avail_out = sizeof(gzip->compressed);
}

/*
 * Compress the pending input. flush is Z_NO_FLUSH, Z_BLOCK to end a block, or Z_FINISH to end the
 * member.
 */
static void input_compress(struct gzip *gzip, int flush)
{
	bool was_full;
	int status;

	do {
		/* Z_BUF_ERROR: nothing to do. Other errors are misuse. */
		status = deflate(&gzip->zlib, flush);
		assert(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR);
		was_full = !gzip->zlib.avail_out;
		if (was_full || flush == Z_FINISH)
			compressed_write(gzip);
	} while (!gzip->error && (flush == Z_FINISH ? status != Z_STREAM_END : was_full));
}

/*
 * For fopencookie(3): a result below length is a failure, and 0 with errno reports it. A write
 * that does not fill the buffer comes from fflush(3), or is the last.
 */
static ssize_t cookie_write(void *cookie, const char *bytes, size_t length)
{
	struct gzip *gzip = cookie;
	uInt step;

	for (size_t done = 0; done < length && !gzip->error; done += step) {
		step = length - done < BUFFER_BYTES ? (uInt)(length - done) : BUFFER_BYTES;
		gzip->zlib.next_in = (z_const Bytef *)bytes + done;
		gzip->zlib.avail_in = step;
		input_compress(gzip, step < BUFFER_BYTES ? Z_BLOCK : Z_NO_FLUSH);
	}
	if (!gzip->error)
		return (ssize_t)length;
	errno = -gzip->error;
	return 0;
}

static int cookie_close(void *cookie)
{
	struct gzip *gzip = cookie;
	int err;

	gzip->zlib.avail_in = 0;
	if (!gzip->error)
		input_compress(gzip, Z_FINISH);
	err = gzip->error;
	(void)deflateEnd(&gzip->zlib);
	free(gzip);
	if (err)
		errno = -err;
	return err ? -1 : 0;
}

static int stream_open(FILE *out, int level, FILE **ret_stream)
{
	static const cookie_io_functions_t functions = {
		.write = cookie_write,
		.close = cookie_close,
	};
	struct gzip *gzip = calloc(1, sizeof(*gzip));
	FILE *stream;

	if (!gzip)
		return -ENOMEM;
	gzip->out = out;
	gzip->zlib.next_out = gzip->compressed;
	gzip->zlib.avail_out = sizeof(gzip->compressed);
	if (deflateInit2(&gzip->zlib, level, Z_DEFLATED, GZIP_WINDOW_BITS, DEFAULT_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return -ENOMEM;
	}
	stream = fopencookie(gzip, "w", functions);
	if (!stream) {
		(void)deflateEnd(&gzip->zlib);
		free(gzip);
		return -ENOMEM;
	}
	(void)setvbuf(stream, gzip->input, _IOFBF, sizeof(gzip->input));
	*ret_stream = stream;
	return 0;
}

int gzip_open(FILE *out, FILE **ret_stream)
{
	return stream_open(out, Z_DEFAULT_COMPRESSION, ret_stream);
}

int gzip_open_fast(FILE *out, FILE **ret_stream)
{
	return stream_open(out, FAST_LEVEL, ret_stream);
}

int gzip_close(FILE *stream)
{
	if (!stream)
		return 0;
	errno = EIO;
	return fclose(stream) ? -errno : 0;
}
