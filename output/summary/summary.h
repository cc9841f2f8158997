/* SPDX-License-Identifier: MIT */
/* A table for people: what was sampled, and the functions that took the most time. */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the summary to out and flush it: of each run what was sampled, in one line each if
 * they are many; what has to be known of the samples (caveats.h); then what options ask for, one
 * below the other: callers, callees, the tree; if none of them, the table.
 *
 * Rows of the table are sorted by self time, then total time, then name. Percentages are of
 * the time that all samples stand for; the self ones add up to 100, with a row
 * LABEL_NO_PYTHON_FRAMES for what has no function. With a base each row has its share now and
 * before, of the time of its own side, and the difference in percentage points, by whose
 * amount they are sorted; what one side only has is marked. Narrow terminals do without the
 * times there, or without what was before as well.
 *
 * The tree has the calls with at least half a percent of the time, the largest first and at
 * most max_rows lines; a last line says what is not shown. Chains of calls with one callee
 * each and next to no time of their own lose their middle. callers and callees tell, for the
 * hottest ten functions whose label has the text in it, the direct ones: a sample counts once
 * for a call however often the call is in its stack, so where there is recursion they add up
 * to more than the function. Neither looks at the base.
 *
 * Paths and names that are too long for the terminal lose their beginning. Widths below 60
 * are taken for 60.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int summary_write(const struct artefact *artefact, FILE *out);
