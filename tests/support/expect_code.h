/* SPDX-License-Identifier: MIT */
/* What tests expect of a map of code. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "symbols/jit/jit_map.h"

/* The name of what the map has at addr at time_ns is expected; "-": it has nothing there. */
static inline void expect_code(const struct jit_map *map, remote_addr addr, uint64_t time_ns,
			       const char *expected)
{
	const struct jit_code *code = jit_map_find(map, addr, time_ns);
	const char *name = code ? code->name : "-";

	cr_expect(zero(int, strcmp(name, expected)), "0x%llx at %llu: %s, not %s",
		  (unsigned long long)addr, (unsigned long long)time_ns, name, expected);
}
