/* SPDX-License-Identifier: MIT */
/* The data of the page (docs/formats.md): a header and columns. */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the data of a profile, which must have a row per line and keep its samples. They are
 * streamed: memory is 4 bytes a sample, 8 a tick, the source lines, and a little for each
 * function. Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int page_data_write(const struct artefact *artefact, FILE *out);
