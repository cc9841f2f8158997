/* SPDX-License-Identifier: MIT */
/*
 * Decodes the line and columns of an instruction from a code object's co_linetable (co_lnotab
 * before 3.10). The table is untrusted: any input gives an answer or "no line".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The encoding of a table. Source: CPython Objects/lnotab_notes.txt of 3.9 and of 3.10; 3.11
 * Objects/locations.md, Objects/codeobject.c (PyCode_Addr2Line, advance).
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

/* The source range of an instruction. */
struct linetable_position {
	int32_t line;	    /* 0 if it has none */
	int32_t column;	    /* 0-based byte offset in UTF-8; -1 if unknown */
	int32_t end_line;   /* at least line; -1 if unknown */
	int32_t end_column; /* one past the last byte; -1 if unknown */
};

/*
 * Everything that the table says about the instruction at code_offset_bytes, a multiple of 2 from
 * the start of the bytecode. A negative offset (a frame that has not begun) gives first_line. There
 * is no line for an instruction without one, for an offset past the end of the table (lnotab has no
 * end: its last line goes on), or at and after damage. Tables before 3.11 have lines only. A
 * damaged entry of a newer table whose line is readable gives only the line.
 */
struct linetable_position linetable_position(const struct linetable *table,
					     int32_t code_offset_bytes);

/*
 * The line of each of a function's nr_units code units, 0 if it has none. Takes one pass over the
 * table.
 */
void linetable_lines(const struct linetable *table, int32_t *ret_lines, size_t nr_units);

/* The largest number of code units (two bytes each) that a table of size_bytes can describe. */
size_t linetable_max_units(enum linetable_format format, size_t size_bytes);
