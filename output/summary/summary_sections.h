/* SPDX-License-Identifier: MIT */
/*
 * The sections of a summary below its header, one file each. output/summary/summary.c combines
 * them.
 */
#pragma once

#include "output/summary/summary_page.h"

/*
 * Print the table of processes by time, if the profile has roots of several. Returns 0 or
 * -ENOMEM.
 */
int summary_processes_print(struct summary_page *page);

/* Print the table of functions by self time. Returns 0 or -ENOMEM. */
int summary_table_print(struct summary_page *page);

/* Print the table of both sides, by the change of self time's share. Returns 0 or -ENOMEM. */
int summary_diff_print(struct summary_page *page);

/* Print the tree of calls, outermost first, without the small ones. Returns 0 or -ENOMEM. */
int summary_tree_print(struct summary_page *page);

/*
 * Print the hottest function that is called text or, if there is none, whose label contains it: its
 * callers, callees and lines. Returns 0 or -ENOMEM.
 */
int summary_explain_print(struct summary_page *page, const char *text);

/* Print the last line of a table with more rows than are shown. */
void summary_more_print(struct summary_page *page, uint64_t nr_more);
