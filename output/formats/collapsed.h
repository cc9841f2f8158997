/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, the format of flamegraph.pl, inferno, speedscope and others. Each distinct
 * stack is a line: its frames, outermost first and separated by ';', a space, and its number of
 * samples. With CPU time the number is in microseconds, rounded, and stacks that round to 0 are
 * omitted.
 *
 * In a comparison the numbers are microseconds, scaled so that the base has as many in all as the
 * profile, and that of the base comes first: "a;b 3 5" had 3 in as long a time and now has 5. A
 * stack is 0 only where it does not occur. Source: difffolded.pl -n, whose output flamegraph.pl and
 * inferno colour by the difference.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile to out and flush it. With options.header, comment lines describe the runs
 * first. Stacks come in the order first seen; the one without frames is LABEL_NO_PYTHON_FRAMES.
 * Labels are those of label_append_frame(), LABEL_COLLAPSED.
 *
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int collapsed_write(const struct artefact *artefact, FILE *out);
