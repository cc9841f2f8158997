/* SPDX-License-Identifier: MIT */
/*
 * The static flame graph: an .svg without script, for mail and for CI, that looks as those of
 * flamegraph.pl do. What a frame is its <title> says, which browsers show under the mouse:
 * "NAME (N samples, P%)"; by CPU time microseconds. In a comparison "; +D%" behind it is how
 * many percentage points its share has grown against that of the base.
 *
 * Source: flamegraph.pl, of which the measures, the order and the titles are.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/* Pixels of the image: as wide as flamegraph.pl's; what is narrower than so much is left out. */
#define SVG_WIDTH     1200
#define SVG_MIN_WIDTH 0.1

/* Beyond that nobody scrolls; deeper frames are left out, and a line says so. */
#define SVG_MAX_ROWS 500

/*
 * Write the image and flush it. Streamed: memory is what the tree takes again, at most. 0;
 * -ENOMEM; the stream's error as negative errno.
 */
int flamegraph_svg_write(const struct artefact *artefact, FILE *out);
