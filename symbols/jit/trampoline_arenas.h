/* SPDX-License-Identifier: MIT */
/*
 * Where CPython has its trampolines (perf_trampoline.h): arenas that it fills with copies ahead of
 * time and hands out one after the other, some with room behind each. Which of them are used is
 * told by a struct of each arena, the newest of which is what one word of _PyRuntime points to. No
 * offset leads there; it is known by what it says, that a piece of executable memory begins here,
 * and ends there.
 *
 * Source: Python/perf_trampoline.c, code_arena_t, of CPython 3.12 to 3.15.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"

/* So far from the beginning of _PyRuntime the word is looked for: it is at 1960 to 2880. */
#define TRAMPOLINE_ARENAS_RUNTIME_BYTES 8192

/*
 * Arenas of a process; others are left out. One has 65536 bytes, for 4096 trampolines at most; what
 * is longer than twice that is none, so that a chain that leads in a circle costs a second, not
 * many.
 */
#define TRAMPOLINE_ARENAS_MAX	    256
#define TRAMPOLINE_ARENAS_MAX_BYTES (128u << 10)

/* What a trampoline is called of which nothing tells the name. */
#define TRAMPOLINE_ARENAS_NAME "[trampoline]"

/*
 * Add to map, as of from_ns on, the trampolines in use that it has nothing at, of a process with
 * these maps whose _PyRuntime is at runtime_addr. 0; -ENOMEM; -ESRCH; -EPERM. What cannot be read
 * otherwise is left out.
 */
int trampoline_arenas_read(struct remote_memory *memory, const struct maps *maps,
			   remote_addr runtime_addr, struct jit_map *map, uint64_t from_ns);
