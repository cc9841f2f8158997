/* SPDX-License-Identifier: MIT */
/*
 * The format of speedscope: a profile for each thread, with its stacks in order of time.
 * docs/formats.md describes the part that is written.
 *
 * Source: https://www.speedscope.app/file-format-schema.json
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile and flush. Consecutive equal stacks are merged and their
 * weights added. Time without a sample, or without frames, is an empty stack, so that every
 * thread's axis begins at the first sample of all. With CPU time the axis is CPU time and has no
 * gaps.
 *
 * The text has a number for each frame of each stack, so many deep samples easily make a
 * gigabyte. Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int speedscope_write(const struct artefact *artefact, FILE *out);
