/* SPDX-License-Identifier: MIT */
/*
 * The page that a summary is written on: lines that keep to the terminal, styles only if they
 * are wanted, and columns of times and shares. In a mode without time what is counted stands
 * where times do. For the parts of output/summary/summary.c.
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
	struct text cell; /* being made */
	int time_width;	  /* of a column of seconds */
	int time_decimals;
};

/* Free its texts. */
void summary_page_done(struct summary_page *page);

/* Columns of the terminal, those below SUMMARY_MIN_COLUMNS taken for that; 0: as wide as needed. */
unsigned summary_page_columns(const struct summary_page *page);

/* Begin and end a style, one of the two above or "", if the page has colours. */
void summary_page_style(struct summary_page *page, const char *style);
void summary_page_plain(struct summary_page *page);

/* Print the line that is in the cell in a style, cut to the terminal, and empty the cell. */
void summary_page_line(struct summary_page *page, const char *style);

/* Make columns of seconds so wide that this one fits. */
void summary_page_fit_time(struct summary_page *page, uint64_t longest_ns);

/* Columns of a time with the gap behind it. */
size_t summary_page_time_columns(const struct summary_page *page);

/*
 * Append seconds, what a column of them is called ("self s"), a share of whole_ns in percent
 * ("  12.5"), each with the gap behind it.
 */
void summary_page_time(struct summary_page *page, uint64_t ns);
void summary_page_time_head(struct summary_page *page, const char *what);
void summary_page_share(struct summary_page *page, uint64_t ns, uint64_t whole_ns);

/* Append a time with its unit to the line that is being made: "1.500 s", "3 threads". */
void summary_page_amount(struct summary_page *page, uint64_t ns);

/* ns of whole_ns in percent; 0 if there is no whole. */
double summary_percent(uint64_t ns, uint64_t whole_ns);
