/* SPDX-License-Identifier: MIT */
/*
 * The interactive flame graph: one self-contained .html that needs neither network nor server. It
 * has all samples (page_data.h) and the script that shows them (viewer.h).
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the page and flush it. The profile must have a row per line and keep its samples. Returns
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int flamegraph_html_write(const struct artefact *artefact, FILE *out);
