/* SPDX-License-Identifier: MIT */
/*
 * Bytes that are read one after the other, with the numbers of recordings (docs/formats.md)
 * and of DWARF.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Initialise with the bytes, which are borrowed, and is_bad false. What is not there, or has
 * not its form, is 0 and sets is_bad, and so is everything from then on: many calls need one
 * check.
 */
struct byte_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

/* The next number in LEB128. */
uint64_t byte_cursor_uint_slow(struct byte_cursor *cursor);

/* The next number in the LEB128 with a sign of DWARF 5 §7.6; bits above the 64th are dropped. */
int64_t byte_cursor_signed_leb(struct byte_cursor *cursor);

/* The next nr bytes as a number, little endian; nr is at most 8. */
uint64_t byte_cursor_fixed(struct byte_cursor *cursor, uint32_t nr);

/* Bytes as a cursor of their own. */
struct byte_cursor byte_cursor_split(struct byte_cursor *cursor, uint64_t nr);

static inline bool byte_cursor_is_at_end(const struct byte_cursor *cursor)
{
	return cursor->at == cursor->end;
}

/* The next number in LEB128; most are one byte. */
static inline uint64_t byte_cursor_uint(struct byte_cursor *cursor)
{
	if (cursor->at != cursor->end && *cursor->at < 0x80)
		return *cursor->at++;
	return byte_cursor_uint_slow(cursor);
}

/* The next number with a sign of recordings: 0, 1, 2, 3 are 0, -1, 1, -2. */
static inline int64_t byte_cursor_int(struct byte_cursor *cursor)
{
	uint64_t number = byte_cursor_uint(cursor);

	return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}
