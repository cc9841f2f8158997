/* SPDX-License-Identifier: MIT */
/* Values of options, as people write them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* "1234". False if it is no process id. */
bool parse_pid(const char *text, pid_t *ret_pid);

/*
 * "100", "1khz", "20k", "0.5hz", in Hz; "max" is 0: as fast as can be. False if
 * it is none of these, or not between 0.01 Hz and 1 MHz.
 */
bool parse_rate(const char *text, double *ret_rate_hz);

/* "10", "2.5", "500ms", "90s", "5m", "1h". False if it is none of these, zero, or above a year. */
bool parse_duration(const char *text, uint64_t *ret_duration_ns);

/*
 * The process id that must be the only argument left. False after an error was
 * printed.
 */
bool parse_only_pid(int argc, char **argv, int first, pid_t *ret_pid);
