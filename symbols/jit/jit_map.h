/* SPDX-License-Identifier: MIT */
/*
 * The map of the code that a program made while it ran: which code was at an address at a time.
 * All sources feed it: jitdump files, perf maps, the lists for debuggers and for libunwind, and
 * code that is in none of these: trampolines and executors.
 *
 * Codes of one source never overlap in both address and time. A later code ends, at its own
 * start, every code that it overlaps; it ends it entirely, since the rest of a function is
 * useless. Times are the source's, in nanoseconds of CLOCK_MONOTONIC. Codes of a source without
 * times start with the process; of those that overlap, the one added last counts for all times.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* No end; and a time at which only codes without an end exist. */
#define JIT_MAP_OPEN_NS UINT64_MAX
#define JIT_MAP_NOW_NS	(UINT64_MAX - 1)

/*
 * Limit on codes; more are refused. A server that ran for five hours had 175,000, one VM 300,000.
 */
#define JIT_MAP_MAX_CODES (1u << 20)

/*
 * Limit on the bytes of names; more are refused. JIT_MAP_MAX_CODES of the longest common names,
 * those of Java, have that many.
 */
#define JIT_MAP_MAX_NAMES_BYTES (256u << 20)

/*
 * Limit on the codes that a search examines before it gives up: for a real program's codes it
 * examines a few dozen, or as many as it finds.
 */
#define JIT_MAP_MAX_STEPS 16384

/* In order of preference. */
enum jit_source {
	JIT_SOURCE_JITDUMP,
	JIT_SOURCE_GDB,
	JIT_SOURCE_LIBUNWIND,
	JIT_SOURCE_PERF_MAP,
	JIT_SOURCE_TRAMPOLINE, /* a CPython trampoline that no other source has */
	JIT_SOURCE_EXECUTORS,  /* likewise: on an interpreter's list of executors */
	NR_JIT_SOURCES,
};

/* One piece of code at one place, usually a function. */
struct jit_code {
	remote_addr start_addr; /* [start_addr, start_addr + nr_bytes); the sum does not overflow */
	uint64_t nr_bytes;	/* not 0 */
	uint64_t from_ns;	/* [from_ns, to_ns) */
	uint64_t to_ns;		/* JIT_MAP_OPEN_NS: still there */
	const char *name;	/* may contain any bytes; borrowed from the map */
	enum jit_source source;
	/*
	 * The source finds the rest of its information by these; 0 means none. Of a jitdump: the
	 * offsets of the LOAD, the DEBUG_INFO and the UNWINDING_INFO in the file. Of a list: the
	 * addresses of the entry and, to unwind, of its ELF file.
	 */
	uint32_t file_index;
	uint64_t code_index;
	uint64_t code_place;
	uint64_t lines_place;
	uint64_t unwind_place;
};

struct jit_map;

/* Create an empty map. NULL if out of memory. jit_map_destroy() accepts NULL. */
struct jit_map *jit_map_create(void);
void jit_map_destroy(struct jit_map *map);

/*
 * Add a code, whose to_ns is JIT_MAP_OPEN_NS. The name is copied; name_bytes is its length, as it
 * need not be terminated. If a later code already overlaps, the code is added with its end set.
 * *ret_code, if ret_code is not NULL, is the code's index. Amortised O(log n).
 *
 * Returns 0; -EBADMSG if the code is empty or extends beyond the last address; -E2BIG if a limit
 * above is reached, or if too many codes overlap to examine them all; -ENOMEM.
 */
int jit_map_add(struct jit_map *map, const struct jit_code *code, size_t name_bytes,
		uint32_t *ret_code);

/* End a code of the map at to_ns, unless it ends earlier. */
void jit_map_end(struct jit_map *map, const struct jit_code *code, uint64_t to_ns);

/*
 * The code that was at addr at time_ns, by the preferred source that has one, or by the given
 * source. Borrowed until the next change; NULL if there is none. Allocates nothing. Takes O(log²
 * n), unless codes overlap as those of no real program do; the search is then given up.
 */
const struct jit_code *jit_map_find(const struct jit_map *map, remote_addr addr, uint64_t time_ns);
const struct jit_code *jit_map_find_in(const struct jit_map *map, enum jit_source source,
				       remote_addr addr, uint64_t time_ns);

/* The codes in the order of their addition. Borrowed until the next change. */
const struct jit_code *jit_map_codes(const struct jit_map *map, uint32_t *ret_nr_codes);

/*
 * The indexes of all codes that existed for some time, sorted by address, then time, then source.
 * *ret_indexes is allocated; release it with free(). Returns 0 or -ENOMEM.
 */
int jit_map_sort(const struct jit_map *map, uint32_t **ret_indexes, uint32_t *ret_nr_indexes);

/*
 * The name of a source in texts: "jitdump", "gdb", "libunwind", "perf map", "memory",
 * "executors".
 */
const char *jit_source_text(enum jit_source source);
