/* SPDX-License-Identifier: MIT */
/*
 * The columns of the page's data (docs/formats.md): numbers as LEB128, one column after the
 * other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/page/page_index.h"

/* Receives a column's numbers and writes or only counts them. */
struct page_numbers {
	FILE *out;	  /* borrowed; NULL: only count */
	uint64_t unit;	  /* divides all numbers */
	uint64_t divisor; /* greatest possible unit; 0: all numbers are 0 */
	uint64_t nr, bytes;
};

struct page_column {
	const char *name;
	bool is_signed; /* zigzag */
	void (*write)(const struct page_index *index, struct page_numbers *numbers);
};

/* More than there are kinds of columns. */
#define PAGE_MAX_COLUMNS 24

/*
 * Store the columns that the data need in ret_columns. *ret_nr is their number, at most
 * PAGE_MAX_COLUMNS.
 */
void page_columns_choose(const struct page_index *index, bool has_base,
			 const struct page_column *ret_columns[PAGE_MAX_COLUMNS], uint32_t *ret_nr);

/*
 * Returns the number of values in a column, their greatest unit, and their size in bytes in that
 * unit.
 */
struct page_numbers page_column_measure(const struct page_column *column,
					const struct page_index *index);

/* Write a column in a given unit. Errors stay with the stream. */
void page_column_write(const struct page_column *column, const struct page_index *index,
		       uint64_t unit, FILE *out);
