/* SPDX-License-Identifier: MIT */
/*
 * The page of a summary: lines cut to the terminal, optional styles, and columns of times and
 * shares. Modes without time show counts in place of times. For the sections of
 * output/summary/summary.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/artefact.h"
#include "output/text/text.h"

#define SUMMARY_MIN_COLUMNS 60
#define SUMMARY_BOLD	    "\033[1m"
#define SUMMARY_DIM	    "\033[2m"

struct summary_page {
	const struct artefact *artefact; /* borrowed */
	struct text out;
	struct text cell; /* text of the current cell */
	int time_width;	  /* width of a time column */
	int time_decimals;
};

/* Free the texts. */
void summary_page_done(struct summary_page *page);

/* Returns the width of the terminal, at least SUMMARY_MIN_COLUMNS; 0: as wide as needed. */
unsigned summary_page_columns(const struct summary_page *page);

/* Begin a style, one of the two above or "", and end it. No effect without colours. */
void summary_page_style(struct summary_page *page, const char *style);
void summary_page_plain(struct summary_page *page);

/* Print the cell as a line in a style, cut to the terminal, and clear the cell. */
void summary_page_line(struct summary_page *page, const char *style);

/* Make time columns wide enough for this time. */
void summary_page_fit_time(struct summary_page *page, uint64_t longest_ns);

/* Returns the width of a time column with the gap after it. */
size_t summary_page_time_columns(const struct summary_page *page);

/*
 * Append a time in seconds, the heading of such a column ("self s"), or a share of whole_ns in
 * percent ("  12.5"), each with the gap after it.
 */
void summary_page_time(struct summary_page *page, uint64_t ns);
void summary_page_time_head(struct summary_page *page, const char *what);
void summary_page_share(struct summary_page *page, uint64_t ns, uint64_t whole_ns);

/* Append a time with its unit to the cell: "1.500 s", "3 threads". */
void summary_page_amount(struct summary_page *page, uint64_t ns);

/* Returns ns in percent of whole_ns; 0 if that is 0. */
double summary_percent(uint64_t ns, uint64_t whole_ns);
