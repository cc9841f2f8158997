/* SPDX-License-Identifier: MIT */
#include "procmem/core/decoder.h"

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

const struct decoder *decoder_find(const uint8_t *bytes, size_t size)
{
	enum { NR_DECODERS = 4 };

	static const struct decoder *const decoders[NR_DECODERS] = {&zstd_decoder, &gzip_decoder,
								    &xz_decoder, &lz4_decoder};

	for (size_t i = 0; i < NR_DECODERS; i++)
		if (size >= decoders[i]->magic_bytes &&
		    memcmp(bytes, decoders[i]->magic, decoders[i]->magic_bytes) == 0)
			return decoders[i];
	return is_skippable(bytes, size) ? &zstd_decoder : NULL;
}
