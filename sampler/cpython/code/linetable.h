/* SPDX-License-Identifier: MIT */
/*
 * The line of an instruction, and the columns, from a code object's co_linetable (co_lnotab before
 * 3.10). The table is untrusted bytes: any input ends in an answer or "no line".
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

struct linetable {
	enum linetable_format format;
	const uint8_t *bytes; /* borrowed */
	size_t nr_bytes;
	int32_t first_line; /* of the code object */
};

/* What an instruction was made of: the source from its line and column up to its end. */
struct linetable_position {
	int32_t line;	    /* 0: it has none */
	int32_t column;	    /* in bytes of UTF-8, the first is 0; -1 if not known */
	int32_t end_line;   /* the same as line or a later one; -1 if not known */
	int32_t end_column; /* of the byte behind the last; -1 if not known */
};

/*
 * All that the table says of the instruction at code_offset_bytes (a multiple of 2, from the start
 * of the bytecode; negative, as of a frame that has not begun, gives first_line). There is no line for
 * an instruction without one, an offset behind the table (lnotab has no end: its last line goes on),
 * or one where the table is torn or behind that. Tables before 3.11 know the line alone; a torn entry
 * of a newer one that still has a line is of that line, and no more.
 */
struct linetable_position linetable_position(const struct linetable *table,
					     int32_t code_offset_bytes);

/*
 * The lines of all of a function at once: the line of each of its nr_units code units, 0
 * where there is none. One pass over the table, however long the function is.
 */
void linetable_lines(const struct linetable *table, int32_t *ret_lines, size_t nr_units);

/* So many code units of two bytes a table of size_bytes can give a line, at most. */
size_t linetable_max_units(enum linetable_format format, size_t size_bytes);
