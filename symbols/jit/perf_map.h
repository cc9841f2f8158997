/* SPDX-License-Identifier: MIT */
/*
 * Reads a perf map, /tmp/perf-PID.map, while it grows: lines of "START SIZE NAME", both numbers
 * in hexadecimal, the name up to the end of the line. It has no times, and code that is gone
 * stays in it: of lines that overlap the last one counts.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of Linux.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/jit/jit_map.h"

/* Limit on a line; longer ones are left out. */
#define PERF_MAP_MAX_LINE_BYTES 32768

/* Limit on the bytes read of a file: a million lines have a tenth of it. */
#define PERF_MAP_MAX_BYTES (1024u << 20)

struct perf_map;

/*
 * Create a reader of the file of fd. Takes ownership of fd, also on failure. Codes are marked
 * with file_index and start at from_ns, the start of the process. Nothing is read yet. Returns 0
 * or -ENOMEM. perf_map_close() accepts NULL.
 */
int perf_map_open(int fd, uint32_t file_index, uint64_t from_ns, struct perf_map **ret_map);
void perf_map_close(struct perf_map *perf_map);

/*
 * Read what is new into map. An incomplete line is left for the next call, unless is_final.
 * Malformed lines and codes that the map refuses are skipped and counted. A file that has become
 * shorter is read from the start.
 *
 * Returns 0; -E2BIG after PERF_MAP_MAX_BYTES; -ENOMEM; or another errno.
 */
int perf_map_read(struct perf_map *perf_map, struct jit_map *map, bool is_final);

/* The number of lines skipped so far. */
uint64_t perf_map_nr_bad_lines(const struct perf_map *perf_map);
