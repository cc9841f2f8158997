/* SPDX-License-Identifier: MIT */
/*
 * Decodes the location table of 3.11 and newer, a sequence of entries in the
 * order of the code:
 *
 *   bit   7   6       3   2      0
 *       +---+-----------+----------+
 *       | 1 |   kind    | units - 1|  units: how many 2-byte code units it covers
 *       +---+-----------+----------+
 *       | 0 | payload, by kind …   |  zero or more bytes
 *       +---+----------------------+
 *
 * Bit 7 marks the first byte of an entry and no other. Behind the line everything up to
 * the next marked byte is passed over, as CPython's own reader does: columns, and how many
 * lines the source of the instruction goes on for.
 */
#include "sampler/python/linetable.h"

#include <errno.h>
#include <stdbool.h>

#define CODE_UNIT_BYTES 2

#define ENTRY_START 0x80u /* in the first byte of an entry */

#define VARINT_CHUNK_BITS 6
#define VARINT_CHUNK_MASK 0x3fu
#define VARINT_MORE	  0x40u

/*
 * What the payload of an entry says. Smaller numbers are the short forms.
 *
 * Source: CPython Include/cpython/code.h, enum _PyCodeLocationInfoKind.
 */
enum location_kind {
	LOCATION_ONE_LINE_0 = 10, /* 0 to 2 lines behind the previous entry; two columns */
	LOCATION_ONE_LINE_1 = 11,
	LOCATION_ONE_LINE_2 = 12,
	LOCATION_NO_COLUMNS = 13, /* a line delta */
	LOCATION_LONG = 14,	  /* a line delta, the number of further lines, two columns + 1 */
	LOCATION_NONE = 15,	  /* code that the compiler made up: no line */
};

struct table_reader {
	const uint8_t *table; /* the caller's */
	size_t size_bytes;
	size_t next; /* index of the byte to read next; at most size_bytes */
};

/* One byte that is not the first of an entry. */
static int read_payload(struct table_reader *reader, uint32_t *ret_byte)
{
	if (reader->next == reader->size_bytes || reader->table[reader->next] & ENTRY_START)
		return -EBADMSG;
	*ret_byte = reader->table[reader->next++];
	return 0;
}

/* Chunks of six bits, the lowest first; more than 32 bits are an error. */
static int read_varint(struct table_reader *reader, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 32; shift += VARINT_CHUNK_BITS) {
		uint32_t byte;
		int err = read_payload(reader, &byte);

		if (err)
			return err;
		uint32_t chunk = byte & VARINT_CHUNK_MASK;
		if (chunk > UINT32_MAX >> shift)
			return -EBADMSG;
		value |= chunk << shift;
		if (!(byte & VARINT_MORE)) {
			*ret_value = value;
			return 0;
		}
	}
	return -EBADMSG;
}

/* A line delta: the sign is the lowest bit, the magnitude is above it. */
static int read_svarint(struct table_reader *reader, int32_t *ret_value)
{
	uint32_t value;
	int err = read_varint(reader, &value);

	if (err)
		return err;
	int32_t magnitude = (int32_t)(value >> 1);
	*ret_value = value & 1 ? -magnitude : magnitude;
	return 0;
}

/*
 * By how many lines an entry of that kind is behind the one before it: read from its
 * payload, or told by the kind itself.
 */
static int read_delta(struct table_reader *reader, unsigned int kind, int32_t *ret_delta)
{
	if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
		return read_svarint(reader, ret_delta);
	*ret_delta = kind < LOCATION_ONE_LINE_0 ? 0 : (int32_t)kind - LOCATION_ONE_LINE_0;
	return 0;
}

/*
 * The next entry: its line, 0 if it has none, and how many code units it covers. *line is
 * the line of the entry before it, which entries without a line hand on, and becomes this
 * entry's. False at the end and where the table is torn.
 */
static bool read_entry(struct table_reader *reader, int32_t *line, int32_t *ret_line,
		       size_t *ret_nr_units)
{
	unsigned int head, kind;
	int32_t delta;

	if (reader->next == reader->size_bytes)
		return false;
	head = reader->table[reader->next++];
	if (!(head & ENTRY_START))
		return false;
	kind = head >> 3 & 15;
	*ret_line = 0;
	if (kind != LOCATION_NONE) {
		if (read_delta(reader, kind, &delta) || __builtin_add_overflow(*line, delta, line))
			return false;
		/* Lines count from 1; below that (hand-made code can be) there is none. */
		*ret_line = *line < 0 ? 0 : *line;
	}
	while (reader->next < reader->size_bytes && !(reader->table[reader->next] & ENTRY_START))
		reader->next++;
	*ret_nr_units = (head & 7) + 1;
	return true;
}

int32_t linetable_find_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			   int32_t code_offset_bytes)
{
	struct table_reader reader = {.table = table, .size_bytes = size_bytes};
	int32_t line = first_line;
	int32_t entry_line;
	size_t end = 0; /* cannot overflow: an entry of a byte adds at most 16 */
	size_t nr_units;

	if (code_offset_bytes < 0)
		return first_line < 0 ? 0 : first_line;
	while (read_entry(&reader, &line, &entry_line, &nr_units)) {
		end += nr_units * CODE_UNIT_BYTES;
		if ((size_t)code_offset_bytes < end)
			return entry_line;
	}
	return 0;
}

void linetable_lines_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			 int32_t *ret_lines, size_t nr_units)
{
	struct table_reader reader = {.table = table, .size_bytes = size_bytes};
	int32_t line = first_line;
	int32_t entry_line;
	size_t unit = 0;
	size_t nr_covered;

	while (unit < nr_units && read_entry(&reader, &line, &entry_line, &nr_covered))
		for (; nr_covered > 0 && unit < nr_units; nr_covered--)
			ret_lines[unit++] = entry_line;
	while (unit < nr_units)
		ret_lines[unit++] = 0;
}
