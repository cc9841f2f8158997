/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines, for databases and scripts (docs/formats.md): an object a line, told apart by
 * "type". First each run ("run"), process and thread; then the samples in the order of the
 * profile, each distinct stack before the first sample that names it.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile, which keeps its samples, to out and flush it. Every object of a type has
 * the same keys; what is not known is null. A stack has all its frames, outermost first: they
 * are written as they are read, in no more memory than the deepest stack takes.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int jsonl_write(const struct artefact *artefact, FILE *out);
