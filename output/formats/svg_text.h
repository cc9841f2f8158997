/* SPDX-License-Identifier: MIT */
/*
 * Text in a static image. Its width cannot be measured there, so flamegraph.pl's estimate is
 * used.
 */
#pragma once

#include <stdint.h>

#include "output/text/text.h"

/* Font size in pixels, and the average width of a column in pixels. */
#define SVG_FONT_SIZE	 12
#define SVG_COLUMN_RATIO 0.59
#define SVG_COLUMN_WIDTH (SVG_FONT_SIZE * SVG_COLUMN_RATIO)

/* Append a number with commas between thousands. */
void svg_put_number(struct text *text, uint64_t number);

/*
 * Append what fits of a string in room pixels at that font size, escaped. ".." replaces the rest.
 */
void svg_put_cut(struct text *text, const char *string, double room, int font_size);

/*
 * Append a <text> with what fits of label in room pixels. label is as label.h makes it. A cut
 * label ends in ".."; nothing is appended if not even three columns fit.
 */
void svg_put_fitting(struct text *text, const char *label, double x, double y, double room);
