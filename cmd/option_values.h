/* SPDX-License-Identifier: MIT */
/* Values of options, as people write them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * "100", "1khz", "10k", "0.5hz", in Hz; "max" is 10 kHz. False if
 * it is none of these, or not between 0.01 Hz and 10 kHz.
 */
bool parse_rate(const char *text, double *ret_rate_hz);

/*
 * "10", "2.5", "500ms", "90s", "5m", "1h", in nanoseconds. False if it is none of
 * these, zero, or above a year.
 */
bool parse_duration(const char *text, uint64_t *ret_duration_ns);

/* The same, and "0" with any unit: none. */
bool parse_wait(const char *text, uint64_t *ret_wait_ns);

/*
 * A moment: since the beginning as parse_wait() has it, or before the end with a '-' in front.
 * False if it is none.
 */
bool parse_moment(const char *text, int64_t *ret_moment_ns);

/* "5", "2.5", "5%": percent, from 0 to 100. False if it is none. */
bool parse_percent(const char *text, double *ret_percent);

/* A process id. False if it is none. */
bool parse_pid(const char *text, pid_t *ret_pid);

/* A number from 0 to max, in decimal digits. False if it is none. */
bool parse_count(const char *text, uint32_t max, uint32_t *ret_count);
