/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a line table of each format. The input is first line (4 bytes), offset (4 bytes),
 * table. Also looks up every offset that the table can reach.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/code/linetable.h"

#define HEADER_BYTES	8
#define TABLE_MAX_BYTES 512 /* all offsets of a longer one take too long */
#define ENTRY_MAX_BYTES 16  /* code that one byte of 3.11's table can cover */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct linetable *table, int32_t offset)
{
	struct linetable_position position = linetable_position(table, offset);

	if (position.line < 0)
		abort();
	if (position.column < -1 || position.end_column < -1 ||
	    (position.end_line != -1 && position.end_line < position.line))
		abort();
	if (offset >= 0 &&
	    (size_t)offset / 2 >= linetable_max_units(table->format, table->nr_bytes) &&
	    position.line)
		abort();
}

/* Decoding all lines at once must give the same as one look-up each. */
static void check_lines(const struct linetable *table)
{
	int32_t lines[TABLE_MAX_BYTES * ENTRY_MAX_BYTES / 2 + 1];
	size_t nr_units = table->nr_bytes * ENTRY_MAX_BYTES / 2 + 1;

	linetable_lines(table, lines, nr_units);
	for (size_t i = 0; i < nr_units; i++)
		if (lines[i] != linetable_position(table, (int32_t)(2 * i)).line)
			abort();
}

static void check_format(enum linetable_format format, const uint8_t *bytes, size_t nr_bytes,
			 int32_t first_line, int32_t offset)
{
	const struct linetable table = {format, bytes, nr_bytes, first_line};

	check(&table, offset);
	for (size_t i = 0; i <= nr_bytes * ENTRY_MAX_BYTES; i += 2)
		check(&table, (int32_t)i);
	check_lines(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int32_t first_line;
	int32_t offset;

	if (size < HEADER_BYTES || size > HEADER_BYTES + TABLE_MAX_BYTES)
		return 0;
	memcpy(&first_line, data, sizeof(first_line));
	memcpy(&offset, data + 4, sizeof(offset));
	size_t size_bytes = size - HEADER_BYTES;
	cleanup_free uint8_t *table = malloc(size_bytes + !size_bytes);
	if (!table)
		return 0;
	memcpy(table, data + HEADER_BYTES, size_bytes);

	check_format(LINETABLE_LOCATIONS, table, size_bytes, first_line, offset);
	check_format(LINETABLE_RANGES, table, size_bytes, first_line, offset);
	check_format(LINETABLE_LNOTAB, table, size_bytes, first_line, offset);
	return 0;
}
