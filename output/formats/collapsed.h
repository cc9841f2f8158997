/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, the format that flamegraph.pl, inferno, speedscope and others
 * read: a line for each distinct stack, frames outermost first and separated by
 * ';', a space, and how many samples it was seen in; by CPU time, how many microseconds, of
 * which those below a half are left out.
 *
 * In a comparison the number of the base stands before it: "a;b 3 5" was seen 3 times and now
 * is 5 times; a stack that only one side has is 0 in the other.
 *
 * Source: difffolded.pl, whose output flamegraph.pl and inferno colour by the difference.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile to out and flush it; of the runs there is no place to say anything.
 * Stacks come in the order first seen; the one without any Python frame is
 * LABEL_NO_PYTHON_FRAMES. Labels are those of label_append_frame(), LABEL_COLLAPSED.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int collapsed_write(const struct artefact *artefact, FILE *out);
