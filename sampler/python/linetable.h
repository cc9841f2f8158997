/* SPDX-License-Identifier: MIT */
/*
 * The line of an instruction, from a code object's co_linetable (co_lnotab before 3.10).
 * The table is untrusted bytes: any input ends in an answer or "no line".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * How a table is written.
 * Source: CPython Objects/lnotab_notes.txt of 3.9 and of 3.10; 3.11 Objects/locations.md,
 * Objects/codeobject.c (PyCode_Addr2Line, advance).
 */
enum linetable_format {
	LINETABLE_LOCATIONS, /* 3.11 and newer (PEP 657) */
	LINETABLE_RANGES,    /* 3.10 (PEP 626) */
	LINETABLE_LNOTAB,    /* 3.6 to 3.9 */
};

/*
 * The line of the instruction at code_offset_bytes (a multiple of 2, from the start of
 * the bytecode; negative, as of a frame that has not begun, gives first_line). 0 for an
 * instruction without a line, an offset behind the table (lnotab has no end: its last line
 * goes on), or one where the table is torn or behind that.
 */
int32_t linetable_find(enum linetable_format format, const uint8_t *table, size_t size_bytes,
		       int32_t first_line, int32_t code_offset_bytes);

/*
 * The same for all of a function at once: the line of each of its nr_units code units, 0
 * where there is none. One pass over the table, however long the function is.
 */
void linetable_lines(enum linetable_format format, const uint8_t *table, size_t size_bytes,
		     int32_t first_line, int32_t *ret_lines, size_t nr_units);

/* So many code units of two bytes a table of size_bytes can give a line, at most. */
size_t linetable_max_units(enum linetable_format format, size_t size_bytes);
