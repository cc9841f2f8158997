/* SPDX-License-Identifier: MIT */
/* A table for people: what was sampled, and the functions that took the most time. */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the summary to out and flush it: of each run what was sampled, then the table.
 *
 * Rows are sorted by self time, then total time, then name. Percentages are of
 * the time that all samples stand for; the self ones add up to 100, with a row
 * LABEL_NO_PYTHON_FRAMES for what has no function. Paths and names that are too
 * long for the terminal lose their beginning. Widths below 60 are taken for 60.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int summary_write(const struct artefact *artefact, FILE *out);
