/* SPDX-License-Identifier: MIT */
#include "procmem/byte_cursor.h"

/* Mark the cursor as bad and move it to its end, so that all later reads fail. */
static uint64_t cursor_fail(struct byte_cursor *cursor)
{
	cursor->at = cursor->end;
	cursor->is_bad = true;
	return 0;
}

uint64_t byte_cursor_uint_slow(struct byte_cursor *cursor)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (byte_cursor_is_at_end(cursor))
			break;
		byte = *cursor->at++;
		if (shift == 63 && byte > 1)
			break;
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return number;
	}
	return cursor_fail(cursor);
}

int64_t byte_cursor_signed_leb(struct byte_cursor *cursor)
{
	uint64_t number = 0;
	uint8_t byte = 0x80;

	for (unsigned int shift = 0; byte & 0x80; shift += 7) {
		if (byte_cursor_is_at_end(cursor))
			return (int64_t)cursor_fail(cursor);
		byte = *cursor->at++;
		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80) && (byte & 0x40) && shift + 7 < 64)
			number |= UINT64_MAX << (shift + 7);
	}
	return (int64_t)number;
}

uint64_t byte_cursor_fixed(struct byte_cursor *cursor, uint32_t nr)
{
	uint64_t number = 0;

	if ((uint64_t)(cursor->end - cursor->at) < nr)
		return cursor_fail(cursor);
	for (uint32_t i = 0; i < nr; i++)
		number |= (uint64_t)*cursor->at++ << 8 * i;
	return number;
}

struct byte_cursor byte_cursor_split(struct byte_cursor *cursor, uint64_t nr)
{
	struct byte_cursor part = {.at = cursor->at, .end = cursor->at, .is_bad = cursor->is_bad};

	if ((uint64_t)(cursor->end - cursor->at) < nr) {
		(void)cursor_fail(cursor);
		return (struct byte_cursor){.at = cursor->end, .end = cursor->end, .is_bad = true};
	}
	cursor->at += nr;
	part.end = cursor->at;
	return part;
}
