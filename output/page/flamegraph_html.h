/* SPDX-License-Identifier: MIT */
/*
 * The interactive flame graph: one .html that needs nothing else, no network and no server.
 * It holds all samples (page_data.h), and the script that shows them (viewer.h).
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the page of a profile that has a row per line and kept its samples, and flush it. 0;
 * -ENOMEM; the stream's error as negative errno.
 */
int flamegraph_html_write(const struct artefact *artefact, FILE *out);
