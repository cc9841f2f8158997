/* SPDX-License-Identifier: MIT */
/* The last two columns of a summary's tables: the function, and where it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/profile.h"
#include "output/summary/summary_page.h"

/* What a row is of. The first of these that is there counts. */
struct summary_name {
	const char *words;			 /* for what is no frame; NULL */
	const struct profile_function *function; /* with its line; NULL: the frame is a root */
	int32_t line;
	const char *mark; /* in front of the line: label_line_mark(); static */
	uint32_t frame;	  /* of the profile */
};

/* The name of a row of the profile. */
struct summary_name summary_name_of_frame(const struct profile *profile, uint32_t frame);

/* By name and path, as qsort wants it, so that no order depends on chance. */
int summary_name_compare(const struct summary_name *a, const struct summary_name *b);

/* Widths of both columns. */
struct summary_names {
	size_t name_width, place_width;
};

/* Begin with what the headings take; widen for a row; then share what the numbers leave. */
void summary_names_init(struct summary_names *names);
void summary_names_widen(struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name);
void summary_names_share(struct summary_names *names, const struct summary_page *page,
			 size_t numbers_width);

/* End a line with the headings, or with a row's name and place. */
void summary_names_print_head(const struct summary_names *names, struct summary_page *page);
void summary_names_print(const struct summary_names *names, struct summary_page *page,
			 const struct summary_name *name);
