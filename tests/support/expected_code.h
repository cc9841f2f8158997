/* SPDX-License-Identifier: MIT */
/* Assertions about the contents of a map of JIT code. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "symbols/jit/jit_map.h"

/* Expect the code at addr at time_ns to have this name; "-" expects no code there. */
static inline void expect_code(const struct jit_map *map, remote_addr addr, uint64_t time_ns,
			       const char *expected)
{
	const struct jit_code *code = jit_map_find(map, addr, time_ns);
	const char *name = code ? code->name : "-";

	cr_expect(zero(int, strcmp(name, expected)), "0x%llx at %llu: %s, not %s",
		  (unsigned long long)addr, (unsigned long long)time_ns, name, expected);
}
