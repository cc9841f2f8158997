/* SPDX-License-Identifier: MIT */
/*
 * The only place that writes to stderr, but for cmd/sampling/progress.c. Messages are one line, control
 * characters escaped.
 */
#pragma once

#include "cmd/command.h"

/* "pysample: " and the sentence. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what is worth knowing and no error. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Flush stdout, at the end of a command that wrote to it. status; or EXIT_ERROR after
 * an error was printed, if not everything could be written.
 */
enum exit_status print_finish(enum exit_status status);
