/* SPDX-License-Identifier: MIT */
/* Text in a static image, where nothing can measure it: as wide as flamegraph.pl takes it. */
#pragma once

#include <stdint.h>

#include "output/text/text.h"

/* Pixels; the font's size, and how wide a column is on average. */
#define SVG_FONT_SIZE	 12
#define SVG_COLUMN_RATIO 0.59
#define SVG_COLUMN_WIDTH (SVG_FONT_SIZE * SVG_COLUMN_RATIO)

/* Append a number with a comma at each thousand. */
void svg_put_number(struct text *text, uint64_t number);

/*
 * Append what of a string fits into so many pixels in a font of that size, escaped; ".."
 * stands for the rest.
 */
void svg_put_cut(struct text *text, const char *string, double room, int font_size);

/*
 * Append a <text> of what of label, which is as label.h makes it, fits into so many pixels:
 * cut with ".." behind it, nothing if not even three columns fit.
 */
void svg_put_fitting(struct text *text, const char *label, double x, double y, double room);
