/* SPDX-License-Identifier: MIT */
/* The parts of a summary, each in a file of its own; output/summary/summary.c puts them together. */
#pragma once

#include "output/summary/summary_page.h"

/*
 * What was sampled, and how: some lines for each run, one for each if there are many; and what
 * of it is shown, if that is not simply all of one run.
 */
void summary_header_print(struct summary_page *page);

/* The table of functions, by self time. 0 or -ENOMEM. */
int summary_table_print(struct summary_page *page);

/* The same of both sides, by how much the share of self time differs. 0 or -ENOMEM. */
int summary_diff_print(struct summary_page *page);

/* The tree of calls, outermost first, without what is too small to be told. 0 or -ENOMEM. */
int summary_tree_print(struct summary_page *page);

/* Which side of a call is asked for. */
enum summary_calls { SUMMARY_CALLERS, SUMMARY_CALLEES };

/* Who calls, or is called by, the functions whose label has text in it. 0 or -ENOMEM. */
int summary_calls_print(struct summary_page *page, enum summary_calls which, const char *text);

/* The last line of a table that has more rows than are shown. */
void summary_more_print(struct summary_page *page, uint64_t nr_more);
