/* SPDX-License-Identifier: MIT */
/* Bytes in each compression format that cores may have. free() what is returned. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

static inline uint8_t *pack_zstd(const void *bytes, size_t size, size_t *ret_size)
{
	size_t room = ZSTD_compressBound(size);
	uint8_t *packed = malloc(room);

	*ret_size = ZSTD_compress(packed, room, bytes, size, 3);
	cr_assert(eq(int, ZSTD_isError(*ret_size), 0));
	return packed;
}

static inline uint8_t *pack_gzip(const void *bytes, size_t size, size_t *ret_size)
{
	z_stream zlib = {.next_in = (z_const Bytef *)bytes, .avail_in = (uInt)size};

	cr_assert(
		eq(int, deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK));
	size_t room = deflateBound(&zlib, size);
	uint8_t *packed = malloc(room);

	zlib.next_out = packed;
	zlib.avail_out = (uInt)room;
	cr_assert(eq(int, deflate(&zlib, Z_FINISH), Z_STREAM_END));
	*ret_size = zlib.total_out;
	cr_assert(eq(int, deflateEnd(&zlib), Z_OK));
	return packed;
}

static inline uint8_t *pack_xz(const void *bytes, size_t size, size_t *ret_size)
{
	lzma_stream lzma = LZMA_STREAM_INIT;
	size_t room = size + size / 2 + 1024;
	uint8_t *packed = malloc(room);

	cr_assert(eq(int, lzma_easy_encoder(&lzma, 0, LZMA_CHECK_CRC32), LZMA_OK));
	lzma.next_in = bytes;
	lzma.avail_in = size;
	lzma.next_out = packed;
	lzma.avail_out = room;
	cr_assert(eq(int, lzma_code(&lzma, LZMA_FINISH), LZMA_STREAM_END));
	*ret_size = lzma.total_out;
	lzma_end(&lzma);
	return packed;
}

static inline uint8_t *pack_lz4(const void *bytes, size_t size, size_t *ret_size)
{
	size_t room = LZ4F_compressFrameBound(size, NULL);
	uint8_t *packed = malloc(room);

	*ret_size = LZ4F_compressFrame(packed, room, bytes, size, NULL);
	cr_assert(eq(int, LZ4F_isError(*ret_size), 0));
	return packed;
}

static const struct packing {
	const char *name;
	uint8_t *(*pack)(const void *bytes, size_t size, size_t *ret_size);
} packings[] = {{"zstd", pack_zstd}, {"gzip", pack_gzip}, {"xz", pack_xz}, {"lz4", pack_lz4}};

enum { NR_PACKINGS = sizeof(packings) / sizeof(packings[0]) };
