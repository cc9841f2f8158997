/* SPDX-License-Identifier: MIT */
/* A growing array of bytes, with the number encodings of recordings (docs/formats.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Empty when all zero. Once memory runs out, failed is set and further calls do nothing, so one
 * check covers many calls.
 */
struct byte_buffer {
	uint8_t *bytes; /* owned */
	uint32_t nr, max;
	bool failed;
};

/* Size of the longest LEB128 number. */
enum { BYTE_BUFFER_UINT_BYTES = 10 };

/* Free the bytes and empty the buffer. */
void byte_buffer_done(struct byte_buffer *buffer);

/* Remove the bytes but keep the memory. */
void byte_buffer_clear(struct byte_buffer *buffer);

/* Make room for nr more bytes. Returns false and sets failed if out of memory. */
bool byte_buffer_grow(struct byte_buffer *buffer, uint32_t nr);

/* Append bytes unchanged. */
void byte_buffer_append(struct byte_buffer *buffer, const void *bytes, uint32_t nr);

/* Append a number as nr bytes, at most 8, little endian. */
void byte_buffer_fixed(struct byte_buffer *buffer, uint64_t number, uint32_t nr);

/* Append a string's length and bytes, at most max_bytes, cut between UTF-8 characters. */
void byte_buffer_string(struct byte_buffer *buffer, const char *string, uint32_t max_bytes);

/* Append a number as LEB128. */
static inline void byte_buffer_uint(struct byte_buffer *buffer, uint64_t number)
{
	if (buffer->max - buffer->nr < BYTE_BUFFER_UINT_BYTES &&
	    !byte_buffer_grow(buffer, BYTE_BUFFER_UINT_BYTES))
		return;
	for (; number >= 0x80; number >>= 7)
		buffer->bytes[buffer->nr++] = (uint8_t)(number | 0x80);
	buffer->bytes[buffer->nr++] = (uint8_t)number;
}

/* Append a signed number in zigzag order: 0, -1, 1, -2 become 0, 1, 2, 3. */
static inline void byte_buffer_int(struct byte_buffer *buffer, int64_t number)
{
	byte_buffer_uint(buffer, ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}
