/* SPDX-License-Identifier: MIT */
/* Bytes that are appended, with the numbers of recordings (docs/formats.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * All zero it is empty. Once memory runs out it takes nothing more and says so in failed, so
 * that many calls need one check.
 */
struct byte_buffer {
	uint8_t *bytes; /* owned */
	uint32_t nr, max;
	bool failed;
};

/* The longest number. */
enum { BYTE_BUFFER_UINT_BYTES = 10 };

/* Free what it holds; it is empty then. */
void byte_buffer_done(struct byte_buffer *buffer);

/* Forget the bytes, keep the room. */
void byte_buffer_clear(struct byte_buffer *buffer);

/* Make room for so many bytes more. False if there is none; failed is set then. */
bool byte_buffer_grow(struct byte_buffer *buffer, uint32_t nr);

/* Append bytes as they are. */
void byte_buffer_append(struct byte_buffer *buffer, const void *bytes, uint32_t nr);

/* Append a fixed number of so many bytes, at most 8, little endian. */
void byte_buffer_fixed(struct byte_buffer *buffer, uint64_t number, uint32_t nr);

/* Append the length of a string and its bytes; at most max_bytes, not in the middle of UTF-8. */
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

/* The same with a sign: 0, -1, 1, -2 are 0, 1, 2, 3. */
static inline void byte_buffer_int(struct byte_buffer *buffer, int64_t number)
{
	byte_buffer_uint(buffer, ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}
