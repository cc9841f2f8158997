/* SPDX-License-Identifier: MIT */
/*
 * speedscope's own format: a profile for each thread, with its stacks in the order of time.
 * What of it we write is in docs/formats.md.
 *
 * Source: https://www.speedscope.app/file-format-schema.json
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile, and flush. Stacks that follow each other and are equal
 * are written once, with their weights added; time of which there is no sample, or none with
 * a Python frame, is an empty stack, so that the axis of every thread begins with the first
 * sample of all. Of CPU time the axis is that, and no time is missing from it.
 *
 * The text has a number for every frame of every stack: a gigabyte is soon reached by samples
 * that are deep and many. 0; -ENOMEM; the stream's error as negative errno.
 */
int speedscope_write(const struct artefact *artefact, FILE *out);
