/* SPDX-License-Identifier: MIT */
/*
 * The line of an instruction, from a code object's co_linetable. The table is
 * untrusted bytes: any input ends in an answer or "no line".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where an instruction came from. A value that is not known is 0 (lines) or -1 (columns). */
struct source_position {
	int32_t line;
	int32_t end_line;
	int32_t column;	    /* in bytes of the UTF-8 source line, from 0 */
	int32_t end_column; /* exclusive */
};

/*
 * Decode the location table of 3.11 and newer (PEP 657): the entry that covers
 * the instruction at code_offset_bytes (a multiple of 2, from the start of the
 * bytecode; negative, as of a frame that has not begun, gives first_line). An
 * instruction without a line, an offset behind the table or a torn table give
 * line 0.
 *
 * Source: CPython 3.11 Objects/locations.md, Objects/codeobject.c (advance).
 */
struct source_position linetable_find_311(const uint8_t *table, size_t size_bytes,
					  int32_t first_line, int32_t code_offset_bytes);

/*
 * The same for all of a function at once: the line of each of its nr_units code units, 0
 * where there is none. One pass over the table, however long the function is.
 */
void linetable_lines_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			 int32_t *ret_lines, size_t nr_units);

/* A byte of a table describes at most so many code units: an entry has one byte at least. */
#define LINETABLE_MAX_UNITS_PER_BYTE 8
