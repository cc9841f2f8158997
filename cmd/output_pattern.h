/* SPDX-License-Identifier: MIT */
/*
 * Patterns for the names of outputs: "app-%t.pysample". %t is the start of the period, in local
 * time, as 20260131T235959; %n its number, from 1; %p the process id; %h the name of the machine;
 * %% a percent sign.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct output_pattern_values {
	uint64_t start_unix_ns; /* of the period: CLOCK_REALTIME */
	uint64_t number;	/* of the period, from 1 */
	pid_t pid;
};

/*
 * Whether a pattern is well-formed: it has no other letters after %, and %t and %n are in the
 * name of the file, not of its folder. *ret_is_periodic: it has one of these, so that each period
 * has its own file. Prints an error otherwise.
 */
bool output_pattern_check(const char *pattern, bool *ret_is_periodic);

/*
 * Expand a pattern that was checked. The caller frees *ret_path. *ret_counter_at is the offset
 * behind the first %t or %n, where a counter makes the name unique; 0: the pattern has neither.
 * Returns 0 or -ENOMEM.
 */
int output_pattern_expand(const char *pattern, const struct output_pattern_values *values,
			  char **ret_path, size_t *ret_counter_at);
