/* SPDX-License-Identifier: MIT */
/*
 * A perf map, /tmp/perf-PID.map, that is read while it grows: lines of "START SIZE NAME", both
 * numbers in hexadecimal, the name up to the end of the line. They tell no times, and code that
 * is gone is not taken out: of lines that overlap the last one counts.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of Linux.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/jit/jit_map.h"

/* A longer line is none; it is left out. */
#define PERF_MAP_MAX_LINE_BYTES 32768

/* A larger file is read so far: a million lines have a tenth of it. */
#define PERF_MAP_MAX_BYTES (1024u << 20)

struct perf_map;

/*
 * Read the file of fd, which is the reader's from then on, also on failure; the codes are marked
 * with file_index, and are of from_ns, since when the process runs. Nothing is read yet. 0 or
 * -ENOMEM. perf_map_close() accepts NULL.
 */
int perf_map_open(int fd, uint32_t file_index, uint64_t from_ns, struct perf_map **ret_map);
void perf_map_close(struct perf_map *perf_map);

/*
 * Read what is new, into map. A line without its end is waited for, unless is_final. One that
 * has not the form is left out and counted, as is what the map refuses. A file that has become
 * shorter is read from its beginning. 0; -E2BIG (PERF_MAP_MAX_BYTES were read); -ENOMEM; or another
 * errno.
 */
int perf_map_read(struct perf_map *perf_map, struct jit_map *map, bool is_final);

/* How many lines were left out so far. */
uint64_t perf_map_nr_bad_lines(const struct perf_map *perf_map);

/* The descriptor, borrowed. */
int perf_map_fd(const struct perf_map *perf_map);
