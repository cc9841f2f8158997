/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines, for databases and scripts (docs/formats.md): one object a line, with its kind in
 * "type". Each "run", process and thread comes first; then the samples in the order of the
 * profile, with each distinct stack before the first sample that refers to it.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile, which must keep its samples, to out and flush it. All objects of a type have
 * the same keys; unknown values are null. A stack has all its frames, outermost first; memory is
 * that of the deepest stack.
 *
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int jsonl_write(const struct artefact *artefact, FILE *out);
