/* SPDX-License-Identifier: MIT */
/* Prints the header and the trailer of a recording: report --info. */
#pragma once

#include <stdbool.h>

#include "output/recording/recording.h"

/*
 * Write them and a line for each process to stdout, without flushing it: as "name: value" lines
 * with control characters escaped, or as one JSON object. path is the file's name. Returns 0, or
 * an error of process_amounts_read() with nothing written.
 */
int report_info_print(struct recording *recording, const char *path, bool json);
