/* SPDX-License-Identifier: MIT */
/*
 * The only place that writes to stderr, except cmd/sampling/progress.c, the question of
 * cmd/process_choice.c and, with -v, libbpf. A message is one line with control characters escaped.
 */
#pragma once

#include "cmd/command.h"

/* Print "pysample: " and the sentence. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a note, which is not an error. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the width of the terminal fd in columns; 0 if it is none, or the width is unknown. */
unsigned int print_columns(int fd);

/*
 * Flush stdout at the end of a command that wrote to it. Returns status, or EXIT_ERROR after
 * printing an error if not everything could be written.
 */
enum exit_status print_finish(enum exit_status status);
