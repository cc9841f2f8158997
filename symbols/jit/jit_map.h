/* SPDX-License-Identifier: MIT */
/*
 * The one map of code that a program made while it ran: which code was at an address at a
 * time. All sources feed it: jitdump files, perf maps, the lists for debuggers and for libunwind,
 * and what is in none of these: trampolines and executors.
 *
 * Of one source no two codes are at an address at a time: one that comes later ends, at its own
 * time, what it overlaps, wholly, since what is left of a function is none. Times are those of
 * the source: nanoseconds of CLOCK_MONOTONIC, or the beginning of the process where it tells
 * none; then the last one that was added wins, for all times.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/* No end, and a time at which only what has none is there. */
#define JIT_MAP_OPEN_NS UINT64_MAX
#define JIT_MAP_NOW_NS	(UINT64_MAX - 1)

/* More codes are refused: a server that ran for five hours had 175,000, one VM 300,000. */
#define JIT_MAP_MAX_CODES (1u << 20)

/*
 * More bytes of names are refused: so many codes with the longest usual names, of Java, have them.
 */
#define JIT_MAP_MAX_NAMES_BYTES (256u << 20)

/*
 * A search that has looked at so many is given up: of a real program's codes it looks at a few
 * dozen, or at as many as it finds.
 */
#define JIT_MAP_MAX_STEPS 16384

/* From the one that is believed first on. */
enum jit_source {
	JIT_SOURCE_JITDUMP,
	JIT_SOURCE_GDB,
	JIT_SOURCE_LIBUNWIND,
	JIT_SOURCE_PERF_MAP,
	JIT_SOURCE_TRAMPOLINE, /* CPython's, of which no other source tells */
	JIT_SOURCE_EXECUTORS,  /* likewise: what an interpreter has on its list of them */
	NR_JIT_SOURCES,
};

/* One piece of code, a function as a rule, at one place. */
struct jit_code {
	remote_addr start_addr; /* [start_addr, start_addr + nr_bytes), which does not overflow */
	uint64_t nr_bytes;	/* not 0 */
	uint64_t from_ns;	/* [from_ns, to_ns) */
	uint64_t to_ns;		/* JIT_MAP_OPEN_NS: it is still there */
	const char *name;	/* may hold any byte; borrowed from the map */
	enum jit_source source;
	/*
	 * What follows is the source's, to find the rest of what it tells again; 0 is none.
	 * Of a jitdump the offsets of the LOAD, the DEBUG_INFO and the UNWINDING_INFO in that
	 * file; of the lists the address of the entry and, to unwind, of its file.
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
 * Add a code, with to_ns JIT_MAP_OPEN_NS; its name need not be terminated, name_bytes tells, and
 * is copied. One that was already ended by a later one is added with that end. *ret_code, if not
 * NULL, is its index. Amortised O(log n). 0; -EBADMSG (no bytes, or beyond the last address);
 * -E2BIG (a limit above, or so many later ones overlap that it would take too long); -ENOMEM.
 */
int jit_map_add(struct jit_map *map, const struct jit_code *code, size_t name_bytes,
		uint32_t *ret_code);

/* A code of the map ends then, if it does not end earlier. */
void jit_map_end(struct jit_map *map, const struct jit_code *code, uint64_t to_ns);

/*
 * The code that was at addr at time_ns, by the source that is believed first, or by that
 * source. Borrowed until the next change; NULL: none. Takes no memory, and O(log² n) unless
 * codes overlap as none of a real program do; that is given up.
 */
const struct jit_code *jit_map_find(const struct jit_map *map, remote_addr addr, uint64_t time_ns);
const struct jit_code *jit_map_find_in(const struct jit_map *map, enum jit_source source,
				       remote_addr addr, uint64_t time_ns);

/* The codes in the order in which they were added, borrowed until the next change. */
const struct jit_code *jit_map_codes(const struct jit_map *map, uint32_t *ret_nr_codes);

/*
 * The indexes of all codes that were there at some time, by address, then time, then source.
 * *ret_indexes is allocated (free() it). 0 or -ENOMEM.
 */
int jit_map_sort(const struct jit_map *map, uint32_t **ret_indexes, uint32_t *ret_nr_indexes);

/*
 * What a source is called in texts: "jitdump", "gdb", "libunwind", "perf map", "memory",
 * "executors".
 */
const char *jit_source_text(enum jit_source source);
