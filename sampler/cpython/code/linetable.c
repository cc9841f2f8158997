/* SPDX-License-Identifier: MIT */
/*
 * All three formats are a sequence of entries in the order of the code, each of which
 * covers some of it.
 *
 * 3.6 to 3.9: pairs of bytes, by how much the address rises to the next line, unsigned,
 * and by how much the line changes there, signed. The last line goes on to the end.
 *
 * 3.10: pairs of bytes, how many bytes of code it covers, unsigned, and by how much their
 * line differs from the one before, signed; -128: they have none.
 *
 * 3.11 and newer:
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
 * lines the source of the instruction goes on for. They are read where they are asked for.
 */
#include "sampler/cpython/code/linetable.h"

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

/* In 3.10's table: no line. */
enum { LINE_DELTA_NONE = -128 };

struct table_reader {
	const struct linetable *table;
	size_t next;  /* index of the byte to read next; at most nr_bytes */
	int32_t line; /* of the last entry that had one */
	bool ended;   /* of pairs: what is behind the last good one was handed on */
	bool torn;    /* something was missing, or too large */
};

/* What an entry says of the code that it covers. */
struct table_entry {
	int32_t line; /* 0: none */
	size_t nr_bytes;
	/* Set of 3.11's table only. */
	unsigned int kind;    /* enum location_kind */
	size_t columns_index; /* of the byte behind what says the line */
};

/* One byte that is not the first of an entry; where there is none the entry is torn. */
static uint32_t read_payload(struct table_reader *reader)
{
	if (reader->next == reader->table->nr_bytes ||
	    reader->table->bytes[reader->next] & ENTRY_START) {
		reader->torn = true;
		return 0;
	}
	return reader->table->bytes[reader->next++];
}

/* Chunks of six bits, the lowest first; more than 32 bits are torn. */
static uint32_t read_varint(struct table_reader *reader)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 32; shift += VARINT_CHUNK_BITS) {
		const uint32_t byte = read_payload(reader);
		const uint32_t chunk = byte & VARINT_CHUNK_MASK;

		if (chunk > UINT32_MAX >> shift)
			break;
		value |= chunk << shift;
		if (!(byte & VARINT_MORE))
			return value;
	}
	reader->torn = true;
	return 0;
}

/*
 * By how many lines an entry of that kind is behind the one before it: read from its payload, where
 * the sign is the lowest bit, or told by the kind itself.
 */
static int32_t read_delta(struct table_reader *reader, unsigned int kind)
{
	uint32_t value;

	if (kind != LOCATION_NO_COLUMNS && kind != LOCATION_LONG)
		return kind < LOCATION_ONE_LINE_0 ? 0 : (int32_t)kind - LOCATION_ONE_LINE_0;
	value = read_varint(reader);
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* Lines count from 1; below that (hand-made code can be) there is none. */
static int32_t valid_line(int32_t line)
{
	return line < 0 ? 0 : line;
}

/* One entry of 3.11's table; those without a line hand on the line before theirs. */
static bool read_location(struct table_reader *reader, struct table_entry *ret_entry)
{
	unsigned int head, kind;

	if (reader->next == reader->table->nr_bytes)
		return false;
	head = reader->table->bytes[reader->next++];
	if (!(head & ENTRY_START))
		return false;
	kind = head >> 3 & 15;
	ret_entry->line = 0;
	ret_entry->kind = kind;
	if (kind != LOCATION_NONE) {
		const int32_t delta = read_delta(reader, kind);

		if (reader->torn || __builtin_add_overflow(reader->line, delta, &reader->line))
			return false;
		ret_entry->line = valid_line(reader->line);
	}
	ret_entry->columns_index = reader->next;
	while (reader->next < reader->table->nr_bytes &&
	       !(reader->table->bytes[reader->next] & ENTRY_START))
		reader->next++;
	ret_entry->nr_bytes = (size_t)((head & 7) + 1) * CODE_UNIT_BYTES;
	return true;
}

/*
 * One entry of an older table; at the end one byte alone counts for nothing. A pair of lnotab ends what
 * has the line before it.
 */
static bool read_pair(struct table_reader *reader, struct table_entry *ret_entry)
{
	const bool is_lnotab = reader->table->format == LINETABLE_LNOTAB;
	int8_t line_delta;

	ret_entry->line = valid_line(reader->line);
	if (reader->ended || reader->table->nr_bytes - reader->next < 2) {
		const bool goes_on = is_lnotab && !reader->ended;

		ret_entry->nr_bytes = INT32_MAX;
		reader->ended = true;
		return goes_on;
	}
	ret_entry->nr_bytes = reader->table->bytes[reader->next++];
	line_delta = (int8_t)reader->table->bytes[reader->next++];
	if (!is_lnotab && line_delta == LINE_DELTA_NONE) {
		ret_entry->line = 0;
		return true;
	}
	reader->ended = __builtin_add_overflow(reader->line, line_delta, &reader->line);
	if (is_lnotab)
		return true;
	ret_entry->line = valid_line(reader->line);
	return !reader->ended;
}

/* The next entry. False at the end and where the table is torn. */
static bool read_entry(struct table_reader *reader, struct table_entry *ret_entry)
{
	return reader->table->format == LINETABLE_LOCATIONS ? read_location(reader, ret_entry)
							    : read_pair(reader, ret_entry);
}

/* A column of the long form: 1 is the first, 0 says that there is none. */
static int32_t read_column(struct table_reader *reader)
{
	const uint32_t value = read_varint(reader);

	reader->torn |= value > INT32_MAX;
	return (int32_t)value - 1;
}

/* Read what stands behind the line of an entry of 3.11's table, which has one. */
static void read_columns(struct table_reader *reader, const struct table_entry *entry,
			 struct linetable_position *position)
{
	uint32_t byte;

	reader->next = entry->columns_index;
	position->end_line = position->line;
	switch (entry->kind) {
	case LOCATION_NO_COLUMNS:
		break;
	case LOCATION_LONG:
		reader->torn |= __builtin_add_overflow(position->line, read_varint(reader),
						       &position->end_line);
		position->column = read_column(reader);
		position->end_column = read_column(reader);
		break;
	case LOCATION_ONE_LINE_0:
	case LOCATION_ONE_LINE_1:
	case LOCATION_ONE_LINE_2:
		position->column = (int32_t)read_payload(reader);
		position->end_column = (int32_t)read_payload(reader);
		break;
	default: /* the short form: eight columns by its kind, then three bits, and four of width */
		byte = read_payload(reader);
		position->column = (int32_t)(entry->kind << 3 | byte >> 4);
		position->end_column = position->column + (int32_t)(byte & 15);
		break;
	}
}

struct linetable_position linetable_position(const struct linetable *table,
					     int32_t code_offset_bytes)
{
	struct table_reader reader = {.table = table, .line = table->first_line};
	struct linetable_position unknown = {.column = -1, .end_line = -1, .end_column = -1};
	struct linetable_position position;
	struct table_entry entry = {0};
	size_t end = 0; /* cannot overflow: but for the last, a byte adds at most 255 */

	if (code_offset_bytes < 0) {
		unknown.line = valid_line(table->first_line);
		return unknown;
	}
	while (end <= (size_t)code_offset_bytes) {
		if (!read_entry(&reader, &entry))
			return unknown;
		end += entry.nr_bytes;
	}
	unknown.line = entry.line;
	if (table->format != LINETABLE_LOCATIONS || entry.kind == LOCATION_NONE || reader.line < 0)
		return unknown;
	position = unknown;
	read_columns(&reader, &entry, &position);
	return reader.torn ? unknown : position;
}

void linetable_lines(const struct linetable *table, int32_t *ret_lines, size_t nr_units)
{
	struct table_reader reader = {.table = table, .line = table->first_line};
	struct table_entry entry;
	size_t unit = 0;
	size_t end = 0;

	while (unit < nr_units && read_entry(&reader, &entry)) {
		end += entry.nr_bytes;
		while (unit < nr_units && unit * CODE_UNIT_BYTES < end)
			ret_lines[unit++] = entry.line;
	}
	while (unit < nr_units)
		ret_lines[unit++] = 0;
}

size_t linetable_max_units(enum linetable_format format, size_t size_bytes)
{
	/* Of 3.11 an entry has a byte at least and covers eight units at most; older ones
	   are two bytes and cover 255 bytes. lnotab's last line goes on. */
	return format == LINETABLE_LOCATIONS ? size_bytes * 8
	       : format == LINETABLE_RANGES  ? size_bytes * 64
					     : SIZE_MAX;
}
