/* SPDX-License-Identifier: MIT */
/* The data of the page, as docs/formats.md says: what its header tells, and its columns. */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the data of a profile that has a row per line and kept its samples. Streamed: memory
 * is 4 bytes a sample, 8 a tick, the source lines, and a little for each function. 0; -ENOMEM;
 * the stream's error as negative errno.
 */
int page_data_write(const struct artefact *artefact, FILE *out);
