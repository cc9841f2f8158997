/* SPDX-License-Identifier: MIT */
/* Prints the header and the trailer of a recording: report --info. */
#pragma once

#include <stdbool.h>

#include "output/recording/recording.h"

/*
 * Write them to stdout, without flushing it: as "name: value" lines with control characters
 * escaped, or as one JSON object. path is the file's name.
 */
void report_info_print(const struct recording *recording, const char *path, bool json);
