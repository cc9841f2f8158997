/* SPDX-License-Identifier: MIT */
/*
 * Finds CPython's trampolines (perf_trampoline.h) in its arenas. CPython fills an arena with
 * copies in advance and hands them out in order; some versions leave room after each. A struct
 * for each arena records how many are in use; a word of _PyRuntime points to the newest one. Its
 * offset is not known, so the word is recognised by what it points to: a struct that describes a
 * range of executable memory.
 *
 * Source: Python/perf_trampoline.c, code_arena_t, of CPython 3.12 to 3.15.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"

/* Bytes of _PyRuntime that are searched for the word: it is at 1960 to 2880. */
#define TRAMPOLINE_ARENAS_RUNTIME_BYTES 8192

/*
 * Limit on the arenas of a process; others are left out. An arena has 65536 bytes, for at most
 * 4096 trampolines; anything longer than twice that is rejected, so that a circular chain costs
 * about a second at most.
 */
#define TRAMPOLINE_ARENAS_MAX	    256
#define TRAMPOLINE_ARENAS_MAX_BYTES (128u << 10)

/* The name of a trampoline without a known name. */
#define TRAMPOLINE_ARENAS_NAME "[trampoline]"

/*
 * Add to map the trampolines in use at which it has no code, as of from_ns. maps is of the
 * process; its _PyRuntime is at runtime_addr. What cannot be read for other reasons is left out.
 * Returns 0; -ENOMEM; -ESRCH; -EPERM.
 */
int trampoline_arenas_read(struct remote_memory *memory, const struct maps *maps,
			   remote_addr runtime_addr, struct jit_map *map, uint64_t from_ns);
