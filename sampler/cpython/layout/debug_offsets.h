/* SPDX-License-Identifier: MIT */
/*
 * The offsets that a CPython of 3.13 or newer carries itself: _Py_DebugOffsets, at the
 * start of its _PyRuntime. The struct does not say where its fields stand; they moved
 * between minor versions, and within one before its first release. So a layout is
 * judged by what it makes of the numbers.
 */
#pragma once

#include "sampler/cpython/layout/offsets.h"

/* The eight bytes it begins with. */
#define DEBUG_OFFSETS_COOKIE "xdebugpy"

/* So much is read at most: 3.15's has 888 bytes, and the runtime goes on for 280 kB. */
enum { DEBUG_OFFSETS_MAX_BYTES = 1536 };

/* A copy of one. */
struct debug_offsets {
	uint32_t version_hex;
	bool free_threaded;
	size_t nr_bytes; /* so many could be read */
	uint8_t bytes[DEBUG_OFFSETS_MAX_BYTES];
};

/*
 * Where each number stands in such a struct, in bytes from its start; OFFSET_ABSENT for what it
 * does not carry. The struct is followed by no size of its own: size is where it ends.
 */
struct debug_offsets_layout {
	uint32_t minor;
	uint32_t size;
	struct py_offsets at;
	struct py_tlbc tlbc_at;
};

/*
 * The layout of 3.minor, FIRST_MINOR_THAT_TELLS or newer; of one that is newer than all, the
 * newest.
 */
struct debug_offsets_layout debug_offsets_layout(uint32_t minor);

/*
 * Read the debug offsets at runtime_addr. 0; -ENOENT (there is no cookie: an older
 * version, or no runtime), -EBADMSG (it is neither free-threaded nor not), -EFAULT,
 * -ESRCH, -EPERM.
 */
int debug_offsets_read(struct remote_memory *memory, remote_addr runtime_addr,
		       struct debug_offsets *ret_table);

/*
 * Fill ret_build from the debug offsets at runtime_addr, a copy of which is table.
 *
 * The layout of the table's minor version is tried first. If the numbers that come out contradict
 * each other (a pre-release, whose table had fewer fields; a minor version that is newer than this
 * pysample), the table is searched: it is a row of groups, one for each struct, in an order that
 * never changed, and the numbers of each group have relations that always hold (a frame's executable
 * is its first word, native_thread_id follows thread_id, …). A group may stand some words before or
 * behind where a known layout has it. What is found that way must fit the live interpreter too, and
 * be the only one that does.
 *
 * 0; -EBADMSG (no layout fits, or several do), -EFAULT (what its version's layout needs could
 * not be read). build.newer_than_tested tells whether it is its version's own.
 *
 * Source: CPython Include/internal/pycore_debug_offsets.h, 3.13 to 3.15.
 */
int debug_offsets_match(struct remote_memory *memory, remote_addr runtime_addr,
			const struct debug_offsets *table, struct py_build *ret_build);
