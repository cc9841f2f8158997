/* SPDX-License-Identifier: MIT */
/* Unpacks gzip files, for tests. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <zlib.h>

/* Unpack a file of one member. The result is NUL-terminated; free() it. */
static inline char *gunzip(const char *file, size_t size, size_t *ret_size)
{
	enum { MAX_BYTES = 1 << 20 };
	char *bytes = malloc(MAX_BYTES + 1);
	z_stream zlib = {
		.next_in = (Bytef *)file,
		.avail_in = (uInt)size,
		.next_out = (Bytef *)bytes,
		.avail_out = MAX_BYTES,
	};

	cr_assert(bytes != NULL);
	cr_assert(eq(int, inflateInit2(&zlib, 15 + 16), Z_OK)); /* gzip, with its checksum */
	cr_assert(eq(int, inflate(&zlib, Z_FINISH), Z_STREAM_END));
	cr_assert(eq(uint, zlib.avail_in, 0));
	bytes[zlib.total_out] = '\0';
	*ret_size = zlib.total_out;
	(void)inflateEnd(&zlib);
	return bytes;
}
