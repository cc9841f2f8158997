/* SPDX-License-Identifier: MIT */
/* A table for people: what was sampled, and the functions that took the most time. */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the summary to out and flush it. It begins with the runs, one line each if there are
 * many, and the caveats (caveats.h). Then come the parts that the options request, one below the
 * other: callers, callees, the tree; without any of them, the table.
 *
 * The table is sorted by self time, then total time, then name. Percentages are of the time of
 * all samples; the self times add up to 100 %, with a row LABEL_NO_PYTHON_FRAMES for samples
 * without a function. With a base, each row has its share now and before, each of the time of its
 * side, and the difference in percentage points, and rows are sorted by the size of that. Rows
 * that only one side has are marked. Narrow terminals omit the times, and then the shares before.
 *
 * The tree has the calls with at least half a percent of the time, the largest first and at most
 * max_rows lines; a last line reports the rest. Long chains of calls, with one callee each and
 * hardly any self time, are folded in the middle.
 *
 * callers and callees list the direct callers or callees of the ten hottest functions whose label
 * contains the text. A sample counts once for a call, however often its stack contains it, so
 * with recursion they can add up to more than the function. Neither these nor the tree show the
 * base.
 *
 * Paths and names that are too long for the terminal lose their beginning. Widths below 60 count
 * as 60.
 *
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int summary_write(const struct artefact *artefact, FILE *out);
