/* SPDX-License-Identifier: MIT */
/*
 * The columns of the page's data (docs/formats.md): numbers as LEB128, one column after the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/page/page_index.h"

/* A number at a time, into a file or only counted. */
struct page_numbers {
	FILE *out;	  /* borrowed; NULL: only counted */
	uint64_t unit;	  /* that all are multiples of, and are divided by */
	uint64_t divisor; /* the greatest such unit; 0: all are 0 */
	uint64_t nr, bytes;
};

struct page_column {
	const char *name;
	bool is_signed; /* zigzag */
	void (*write)(const struct page_index *index, struct page_numbers *numbers);
};

/* What columns there are for these data, and their number in *ret_nr, at most PAGE_MAX_COLUMNS. */
#define PAGE_MAX_COLUMNS 24
void page_columns_choose(const struct page_index *index, bool has_base,
			 const struct page_column *ret_columns[PAGE_MAX_COLUMNS], uint32_t *ret_nr);

/* How many numbers a column has, their greatest unit, and how many bytes they are in it. */
struct page_numbers page_column_measure(const struct page_column *column,
					const struct page_index *index);

/* Write it in a unit of its own; errors stay with the stream. */
void page_column_write(const struct page_column *column, const struct page_index *index,
		       uint64_t unit, FILE *out);
