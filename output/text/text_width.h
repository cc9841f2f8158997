/* SPDX-License-Identifier: MIT */
/* How wide text is on a terminal, and text that is cut to a width. UTF-8, no control characters. */
#pragma once

#include <stddef.h>

#include "output/text/text.h"

/* Columns that a string takes. */
size_t text_width(const char *string);

/* Append a string, or if it is wider than max_width, which is not 0, its beginning and "…". */
void text_append_head(struct text *text, const char *string, size_t max_width);

/* The same with "…" and its end; returns the columns that it took. */
size_t text_append_tail(struct text *text, const char *string, size_t max_width);
