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
 * Bit 7 marks the first byte of an entry and no other, so an entry that was cut
 * short or overwritten is noticed. CPython's own reader looks for the next marked
 * byte instead; the compiler never writes a table in which that makes a difference.
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
	LOCATION_ONE_LINE_0 = 10, /* the line, 0 to 2 behind the previous entry's; two columns */
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

static const struct source_position no_position = {.column = -1, .end_column = -1};

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

/* A column of the long form, which keeps 0 for "not known". */
static int read_long_column(struct table_reader *reader, int32_t *ret_column)
{
	uint32_t value;
	int err = read_varint(reader, &value);

	if (err)
		return err;
	if (value > INT32_MAX)
		return -EBADMSG;
	*ret_column = (int32_t)value - 1;
	return 0;
}

static int read_short(struct table_reader *reader, unsigned int kind,
		      struct source_position *position)
{
	uint32_t byte;
	int err = read_payload(reader, &byte);

	if (err)
		return err;
	position->column = (int32_t)(kind << 3 | byte >> 4);
	position->end_column = position->column + (int32_t)(byte & 15);
	return 0;
}

static int read_one_line(struct table_reader *reader, struct source_position *position)
{
	uint32_t column;
	uint32_t end_column;
	int err = read_payload(reader, &column);

	if (!err)
		err = read_payload(reader, &end_column);
	if (err)
		return err;
	position->column = (int32_t)column;
	position->end_column = (int32_t)end_column;
	return 0;
}

/* The long form behind its line delta; position->line is already known. */
static int read_long(struct table_reader *reader, struct source_position *position)
{
	uint32_t further_lines;
	int err = read_varint(reader, &further_lines);

	if (err)
		return err;
	if (__builtin_add_overflow(position->line, further_lines, &position->end_line))
		return -EBADMSG;
	err = read_long_column(reader, &position->column);
	if (err)
		return err;
	return read_long_column(reader, &position->end_column);
}

/*
 * Decode the payload of an entry. *line is the line of the entry before it, which
 * entries without a line hand on, and becomes this entry's.
 */
static int read_location(struct table_reader *reader, unsigned int kind, int32_t *line,
			 struct source_position *ret_position)
{
	int32_t delta = 0;
	int err = 0;

	*ret_position = no_position;
	if (kind == LOCATION_NONE)
		return 0;
	if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
		err = read_svarint(reader, &delta);
	else if (kind >= LOCATION_ONE_LINE_0)
		delta = (int32_t)kind - LOCATION_ONE_LINE_0;
	if (err)
		return err;
	if (__builtin_add_overflow(*line, delta, line))
		return -EBADMSG;
	ret_position->line = *line;
	ret_position->end_line = *line;

	if (kind == LOCATION_NO_COLUMNS)
		return 0;
	if (kind == LOCATION_LONG)
		return read_long(reader, ret_position);
	if (kind >= LOCATION_ONE_LINE_0)
		return read_one_line(reader, ret_position);
	return read_short(reader, kind, ret_position);
}

/* Lines count from 1 in a source file; below that (hand-made code can be) there is none. */
static struct source_position known_lines(struct source_position position)
{
	if (position.line < 0)
		position.line = 0;
	if (position.end_line < 0)
		position.end_line = 0;
	return position;
}

/* The next entry and how many code units it covers; false at the end and where it is torn. */
static bool read_entry(struct table_reader *reader, int32_t *line,
		       struct source_position *ret_position, size_t *ret_nr_units)
{
	unsigned int head;

	if (reader->next == reader->size_bytes)
		return false;
	head = reader->table[reader->next++];
	if (!(head & ENTRY_START) || read_location(reader, head >> 3 & 15, line, ret_position))
		return false;
	*ret_nr_units = (head & 7) + 1;
	return true;
}

struct source_position linetable_find_311(const uint8_t *table, size_t size_bytes,
					  int32_t first_line, int32_t code_offset_bytes)
{
	struct table_reader reader = {.table = table, .size_bytes = size_bytes};
	struct source_position position = no_position;
	int32_t line = first_line;
	size_t end = 0; /* cannot overflow: an entry of a byte adds at most 16 */
	size_t nr_units;

	if (code_offset_bytes < 0) {
		position.line = first_line;
		position.end_line = first_line;
		return known_lines(position);
	}
	while (read_entry(&reader, &line, &position, &nr_units)) {
		end += nr_units * CODE_UNIT_BYTES;
		if ((size_t)code_offset_bytes < end)
			return known_lines(position);
	}
	return no_position;
}

void linetable_lines_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			 int32_t *ret_lines, size_t nr_units)
{
	struct table_reader reader = {.table = table, .size_bytes = size_bytes};
	struct source_position position;
	int32_t line = first_line;
	size_t unit = 0;
	size_t nr_covered;

	while (unit < nr_units && read_entry(&reader, &line, &position, &nr_covered)) {
		int32_t known_line = known_lines(position).line;

		for (; nr_covered > 0 && unit < nr_units; nr_covered--)
			ret_lines[unit++] = known_line;
	}
	while (unit < nr_units)
		ret_lines[unit++] = 0;
}
