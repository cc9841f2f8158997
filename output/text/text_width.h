/* SPDX-License-Identifier: MIT */
/*
 * The width of text on a terminal, and cutting to a width. Strings are UTF-8 without control
 * characters.
 */
#pragma once

#include <stddef.h>

#include "output/text/text.h"

/* Returns a string's width in columns. */
size_t text_width(const char *string);

/* Append a string or, if it is wider than max_width (not 0), its beginning and "…". */
void text_append_head(struct text *text, const char *string, size_t max_width);

/* Append a string or, if it is wider, "…" and its end. Returns the columns used. */
size_t text_append_tail(struct text *text, const char *string, size_t max_width);
