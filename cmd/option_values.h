/* SPDX-License-Identifier: MIT */
/* Parsers for option values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Parse a rate such as "100", "1khz", "10k" or "0.5hz" into Hz; "max" is 10 kHz. Returns false if
 * it is malformed or not between 0.01 Hz and 10 kHz.
 */
bool parse_rate(const char *text, double *ret_rate_hz);

/*
 * Parse a time such as "10", "2.5", "500ms", "90s", "5m" or "1h" into nanoseconds. Returns false
 * if it is malformed, zero or longer than a year.
 */
bool parse_duration(const char *text, uint64_t *ret_duration_ns);

/* Like parse_duration(), but 0 with any unit is accepted: no waiting. */
bool parse_wait(const char *text, uint64_t *ret_wait_ns);

/*
 * Parse a moment: a time as in parse_wait(), counted from the beginning, or with a leading '-'
 * from the end (then negative). Returns false if it is malformed.
 */
bool parse_moment(const char *text, int64_t *ret_moment_ns);

/*
 * Parse a percentage from 0 to 100, such as "5", "2.5" or "5%". Returns false if it is malformed.
 */
bool parse_percent(const char *text, double *ret_percent);

/* Parse a process id. Returns false if it is malformed. */
bool parse_pid(const char *text, pid_t *ret_pid);

/* Parse a decimal number from 0 to max. Returns false if it is malformed. */
bool parse_count(const char *text, uint32_t max, uint32_t *ret_count);
