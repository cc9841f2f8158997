/* SPDX-License-Identifier: MIT */
/*
 * A bounds-checked cursor over bytes. It decodes the numbers of recordings (docs/formats.md) and
 * of DWARF.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Initialise with the bytes, which are borrowed, and with is_bad false. A value that is missing or
 * malformed reads as 0 and sets is_bad; all later reads fail, too. Callers can thus check once
 * after many reads.
 */
struct byte_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

/* Returns the next unsigned LEB128 number. Use byte_cursor_uint(). */
uint64_t byte_cursor_uint_slow(struct byte_cursor *cursor);

/* Returns the next signed LEB128 number (DWARF 5 §7.6). Bits above the 64th are dropped. */
int64_t byte_cursor_signed_leb(struct byte_cursor *cursor);

/* Returns the next nr bytes, at most 8, as a little-endian number. */
uint64_t byte_cursor_fixed(struct byte_cursor *cursor, uint32_t nr);

/* Returns a cursor over the next nr bytes and skips them. */
struct byte_cursor byte_cursor_split(struct byte_cursor *cursor, uint64_t nr);

static inline bool byte_cursor_is_at_end(const struct byte_cursor *cursor)
{
	return cursor->at == cursor->end;
}

/* Returns the next unsigned LEB128 number. Most are one byte. */
static inline uint64_t byte_cursor_uint(struct byte_cursor *cursor)
{
	if (cursor->at != cursor->end && *cursor->at < 0x80)
		return *cursor->at++;
	return byte_cursor_uint_slow(cursor);
}

/* Returns the next signed number of a recording: 0, 1, 2, 3 encode 0, -1, 1, -2. */
static inline int64_t byte_cursor_int(struct byte_cursor *cursor)
{
	uint64_t number = byte_cursor_uint(cursor);

	return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}
