/* SPDX-License-Identifier: MIT */
/* The only place that writes to stderr. Messages are one line, control characters escaped. */
#pragma once

/* "pysample: " and the sentence. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what is worth knowing and no error. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
