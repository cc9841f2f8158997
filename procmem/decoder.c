/* SPDX-License-Identifier: MIT */
#include "procmem/decoder.h"

#include <string.h>

const struct decoder *decoder_find(const uint8_t *bytes, size_t size)
{
	enum { NR_DECODERS = 4 };

	static const struct decoder *const decoders[NR_DECODERS] = {&zstd_decoder, &gzip_decoder,
								    &xz_decoder, &lz4_decoder};

	for (size_t i = 0; i < NR_DECODERS; i++)
		if (size >= decoders[i]->magic_bytes &&
		    memcmp(bytes, decoders[i]->magic, decoders[i]->magic_bytes) == 0)
			return decoders[i];
	return NULL;
}
