/* SPDX-License-Identifier: MIT */
/*
 * The line of an instruction, from a code object's co_linetable. The table is
 * untrusted bytes: any input ends in an answer or "no line".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The line of the instruction at code_offset_bytes (a multiple of 2, from the start of
 * the bytecode; negative, as of a frame that has not begun, gives first_line), from the
 * location table of 3.11 and newer (PEP 657). 0 for an instruction without a line, an
 * offset behind the table, or one where the table is torn or behind that.
 *
 * Source: CPython 3.11 Objects/locations.md, Objects/codeobject.c (advance).
 */
int32_t linetable_find_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			   int32_t code_offset_bytes);

/*
 * The same for all of a function at once: the line of each of its nr_units code units, 0
 * where there is none. One pass over the table, however long the function is.
 */
void linetable_lines_311(const uint8_t *table, size_t size_bytes, int32_t first_line,
			 int32_t *ret_lines, size_t nr_units);

/* A byte of a table describes at most so many code units: an entry has one byte at least. */
#define LINETABLE_MAX_UNITS_PER_BYTE 8
