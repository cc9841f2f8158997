/* SPDX-License-Identifier: MIT */
#include "procmem/core/decompressor.h"

#include <stdbool.h>
#include <string.h>

/*
 * RFC 8878, 3.1.2: a skippable frame begins with one of 16 magic numbers. pzstd writes one before
 * each of its frames. lz4 allows them as well, but the lz4 program writes none.
 */
static bool is_skippable(const uint8_t *bytes, size_t size)
{
	static const uint8_t magic[] = {0x50, 0x2a, 0x4d, 0x18};

	return size >= sizeof(magic) && (bytes[0] & 0xf0) == magic[0] &&
	       memcmp(bytes + 1, magic + 1, sizeof(magic) - 1) == 0;
}

const struct decompressor *decompressor_find(const uint8_t *bytes, size_t size)
{
	enum { NR_DECOMPRESSORS = 4 };

	static const struct decompressor *const decompressors[NR_DECOMPRESSORS] = {
		&zstd_decompressor, &gzip_decompressor, &xz_decompressor, &lz4_decompressor};

	for (size_t i = 0; i < NR_DECOMPRESSORS; i++)
		if (size >= decompressors[i]->magic_bytes &&
		    memcmp(bytes, decompressors[i]->magic, decompressors[i]->magic_bytes) == 0)
			return decompressors[i];
	return is_skippable(bytes, size) ? &zstd_decompressor : NULL;
}
