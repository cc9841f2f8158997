/* SPDX-License-Identifier: MIT */
/* The last two columns of a summary's tables: the function and its place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/profile.h"
#include "output/summary/summary_page.h"

/* What a row shows: the first of these that is set. */
struct summary_name {
	const char *words;			 /* instead of a function; NULL */
	const struct profile_function *function; /* with its line; NULL: frame is a thread's root */
	int32_t line;
	const char *mark; /* before the line: label_line_mark(); static */
	uint32_t frame;	  /* in the profile */
};

/* Returns the name of a row of the profile. */
struct summary_name summary_name_of_frame(const struct profile *profile, uint32_t frame);

/* By name, path and row, so that the order is stable. */
int summary_name_compare(const struct summary_name *a, const struct summary_name *b);

/* Widths of the two columns. */
struct summary_names {
	size_t name_width, place_width;
};

/*
 * Start with the widths of the headings; widen for each row; then fit both into what the numbers
 * leave.
 */
void summary_names_init(struct summary_names *names);
void summary_names_widen(struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name);
void summary_names_fit(struct summary_names *names, const struct summary_page *page,
		       size_t numbers_width);

/* End a line with the headings, or with a row's name and place. */
void summary_names_print_head(const struct summary_names *names, struct summary_page *page);
void summary_names_print(const struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name);
