/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/encoding/gzip.h"
#include "procmem/cleanup.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes that hardly compress, so that the output buffer fills. */
static char *noise(size_t length)
{
	char *bytes = malloc(length + 1);
	uint32_t state = 1;

	cr_assert(bytes != NULL);
	for (size_t i = 0; i < length; i++) {
		state = state * 1664525 + 1013904223;
		bytes[i] = (char)(state >> 24);
	}
	return bytes;
}

typedef int open_function(FILE *out, FILE **ret_stream);

static char *compress_with(open_function *open, const char *bytes, size_t length, size_t piece,
			   size_t *ret_length)
{
	char *file = NULL;
	FILE *out = open_memstream(&file, ret_length);
	FILE *stream;

	cr_assert(eq(int, open(out, &stream), 0));
	for (size_t i = 0; i < length; i += piece) {
		size_t step = length - i < piece ? length - i : piece;

		cr_assert(eq(sz, fwrite(bytes + i, 1, step, stream), step));
	}
	cr_assert(eq(int, gzip_close(stream), 0));
	cr_assert(eq(int, fclose(out), 0));
	return file;
}

static char *compress_bytes(const char *bytes, size_t length, size_t piece, size_t *ret_length)
{
	return compress_with(gzip_open, bytes, length, piece, ret_length);
}

static void expect_member(const char *file, size_t file_length, const char *bytes, size_t length)
{
	cleanup_free char *back = malloc(length + 1);
	z_stream zlib = {
		.next_in = (Bytef *)file,
		.avail_in = (uInt)file_length,
		.next_out = (Bytef *)back,
		.avail_out = (uInt)length + 1,
	};

	cr_assert(eq(int, inflateInit2(&zlib, 15 + 16), Z_OK)); /* gzip, with its checksum */
	cr_expect(eq(int, inflate(&zlib, Z_FINISH), Z_STREAM_END));
	cr_expect(eq(uint, zlib.avail_in, 0));
	cr_assert(eq(ulong, zlib.total_out, length));
	cr_expect(eq(int, memcmp(back, bytes, length), 0));
	cr_expect(eq(int, inflateEnd(&zlib), Z_OK));
}

Test(gzip, round_trips_data)
{
	static const struct {
		size_t length, piece;
	} cases[] = {{0, 1}, {1, 1}, {70000, 7}, {300000, 300000}, {1000000, 65536}};

	for (size_t i = 0; i < NR(cases); i++) {
		cleanup_free char *bytes = noise(cases[i].length);
		size_t length;
		cleanup_free char *file =
			compress_bytes(bytes, cases[i].length, cases[i].piece, &length);

		expect_member(file, length, bytes, cases[i].length);
	}
}

Test(gzip, fast_compression_round_trips_data)
{
	enum { LENGTH = 1000000 };
	cleanup_free char *bytes = noise(LENGTH);
	size_t length;
	cleanup_free char *file = compress_with(gzip_open_fast, bytes, LENGTH, 7, &length);

	expect_member(file, length, bytes, LENGTH);
}

/*
 * Two runs of bytes with different alphabets: a flush between them gives each its own Huffman
 * codes, which is smaller.
 */
Test(gzip, flush_begins_a_block)
{
	enum { LENGTH = 5000 };
	cleanup_free char *bytes = noise(2 * LENGTH);
	size_t lengths[2];

	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] &= 15;
	for (size_t i = LENGTH; i < 2 * (size_t)LENGTH; i++)
		bytes[i] = (char)((bytes[i] & 15) | 64);
	for (size_t flush = 0; flush < 2; flush++) {
		cleanup_free char *file = NULL;
		FILE *out = open_memstream(&file, &lengths[flush]);
		FILE *stream;

		cr_assert(eq(int, gzip_open(out, &stream), 0));
		cr_assert(eq(sz, fwrite(bytes, 1, LENGTH, stream), LENGTH));
		cr_assert(eq(int, flush ? fflush(stream) : 0, 0));
		cr_assert(eq(sz, fwrite(bytes + LENGTH, 1, LENGTH, stream), LENGTH));
		cr_assert(eq(int, gzip_close(stream), 0));
		cr_assert(eq(int, fclose(out), 0));
		expect_member(file, lengths[flush], bytes, (size_t)LENGTH * 2);
	}
	cr_expect(lengths[1] + LENGTH / 20 < lengths[0], "%zu, %zu", lengths[1], lengths[0]);
}

Test(gzip, same_bytes_make_the_same_file)
{
	size_t one_length;
	size_t other_length;
	cleanup_free char *one = compress_bytes("spam", 4, 1, &one_length);
	cleanup_free char *other = compress_bytes("spam", 4, 4, &other_length);

	cr_assert(eq(sz, one_length, other_length));
	cr_expect(eq(int, memcmp(one, other, one_length), 0));
	cr_expect(eq(int, memcmp(one + 4, "\0\0\0", 4), 0), "no time");
}

Test(gzip, reports_a_write_error)
{
	static const size_t lengths[] = {0, 1, 1000000};

	for (size_t i = 0; i < NR(lengths); i++) {
		cleanup_free char *bytes = noise(lengths[i]);
		FILE *full = fopen("/dev/full", "w");
		FILE *stream;

		setbuf(full, NULL);
		cr_assert(eq(int, gzip_open(full, &stream), 0));
		(void)fwrite(bytes, 1, lengths[i], stream);
		cr_expect(eq(int, gzip_close(stream), -ENOSPC));
		(void)fclose(full);
	}
	cr_expect(eq(int, gzip_close(NULL), 0));
}
