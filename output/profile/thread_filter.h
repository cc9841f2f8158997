/* SPDX-License-Identifier: MIT */
/* Which threads to show, by name or id: --thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero: every thread passes. Strings are borrowed. */
struct thread_filter {
	const char *const *patterns; /* names, patterns of names (glob(7)), or ids; any may match */
	uint32_t nr;
};

/*
 * Whether a thread passes: a pattern is its name, or matches it as glob(7) defines, or is tid in
 * decimal. tid is 0 if it is unknown. A backslash in a pattern has no special meaning.
 */
bool thread_filter_passes(const struct thread_filter *filter, const char *name, pid_t tid);
