/* SPDX-License-Identifier: MIT */
/*
 * The static flame graph: an .svg without scripts, for mail and CI, that looks like
 * flamegraph.pl's. Each frame has a <title>, which browsers show as a tooltip: "NAME (N samples,
 * P%)", with microseconds for CPU time. In a comparison it ends in "; +D%": the change of the
 * frame's share against the base, in percentage points.
 *
 * Source: flamegraph.pl, for the dimensions, the order and the titles.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Width of the image in pixels, as in flamegraph.pl. Narrower frames than the minimum are
 * omitted.
 */
#define SVG_WIDTH     1200
#define SVG_MIN_WIDTH 0.1

/* Deeper frames are omitted, as nobody would scroll that far; a line reports it. */
#define SVG_MAX_ROWS 500

/*
 * Write the image and flush it. It is streamed: memory is at most as much again as the tree
 * takes. Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int flamegraph_svg_write(const struct artefact *artefact, FILE *out);
