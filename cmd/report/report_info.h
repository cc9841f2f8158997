/* SPDX-License-Identifier: MIT */
/* What the header and the trailer of a recording say: report --info. */
#pragma once

#include <stdbool.h>

#include "output/recording/recording.h"

/*
 * Write it to stdout, not flushed: "name: value" lines, control characters escaped, or one JSON
 * object. path is the file's name.
 */
void report_info_print(const struct recording *recording, const char *path, bool json);
