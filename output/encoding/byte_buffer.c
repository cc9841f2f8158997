/* SPDX-License-Identifier: MIT */
#include "output/encoding/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

void byte_buffer_done(struct byte_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct byte_buffer){0};
}

void byte_buffer_clear(struct byte_buffer *buffer)
{
	buffer->nr = 0;
}

bool byte_buffer_grow(struct byte_buffer *buffer, uint32_t nr)
{
	uint32_t needed;
	uint8_t *bytes = NULL;

	if (!buffer->failed && !__builtin_add_overflow(buffer->nr, nr, &needed))
		bytes = array_reserve(buffer->bytes, needed, &buffer->max, 1);
	buffer->failed = !bytes;
	if (bytes)
		buffer->bytes = bytes;
	return bytes;
}

void byte_buffer_append(struct byte_buffer *buffer, const void *bytes, uint32_t nr)
{
	if (!nr || !byte_buffer_grow(buffer, nr))
		return;
	memcpy(buffer->bytes + buffer->nr, bytes, nr);
	buffer->nr += nr;
}

void byte_buffer_fixed(struct byte_buffer *buffer, uint64_t number, uint32_t nr)
{
	if (!byte_buffer_grow(buffer, nr))
		return;
	for (uint32_t i = 0; i < nr; i++)
		buffer->bytes[buffer->nr++] = (uint8_t)(number >> 8 * i);
}

void byte_buffer_string(struct byte_buffer *buffer, const char *string, uint32_t max_bytes)
{
	size_t length = strnlen(string, (size_t)max_bytes + 1);

	if (length > max_bytes)
		for (length = max_bytes; length && ((uint8_t)string[length] & 0xc0) == 0x80;)
			length--;
	byte_buffer_uint(buffer, length);
	byte_buffer_append(buffer, string, (uint32_t)length);
}
