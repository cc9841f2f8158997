/* SPDX-License-Identifier: MIT */
/* Python processes as a table for people, and as JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/ls/python_processes.h"
#include "output/text/text.h"

/*
 * Append a table with a head: id, version, threads, CPU, container and name. A line is cut to
 * columns, unless that is 0. With is_numbered the rows are numbered from 1. The version is "?" if
 * it could not be read; the container is "-", or "(pid ns)" for another PID namespace without one.
 */
void process_table_format(const struct python_processes *processes, size_t columns,
			  bool is_numbered, struct text *text);

/* Write the JSON object of pysample ls --json. Returns 0 or the errno of out. */
int process_table_write_json(const struct python_processes *processes, FILE *out);
