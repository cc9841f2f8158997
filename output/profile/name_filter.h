/* SPDX-License-Identifier: MIT */
/* Which threads or processes to show, by name or id: --thread, --process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero: everything passes. Strings are borrowed. */
struct name_filter {
	const char *const *patterns; /* names, patterns of names (glob(7)), or ids; any may match */
	uint32_t nr;
};

/*
 * Whether a thread or process passes: a pattern is its name, or matches it as glob(7) defines, or
 * is id in decimal. id is 0 if it is unknown. A backslash in a pattern has no special meaning.
 */
bool name_filter_passes(const struct name_filter *filter, const char *name, pid_t id);
