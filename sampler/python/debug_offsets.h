/* SPDX-License-Identifier: MIT */
/*
 * The offsets that a CPython of 3.13 or newer carries itself: _Py_DebugOffsets, at the
 * start of its _PyRuntime. The struct does not say where its fields stand; they moved
 * between minor versions, and within one before its first release. So a layout is
 * judged by what it makes of the numbers: debug_offsets_match.h.
 */
#pragma once

#include "sampler/python/debug_offsets_tables.h"
#include "sampler/python/offsets.h"

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
 * Read the debug offsets at runtime_addr. 0; -ENOENT (there is no cookie: an older
 * version, or no runtime), -EBADMSG (it is neither free-threaded nor not), -EFAULT,
 * -ESRCH, -EPERM.
 */
int debug_offsets_read(struct remote_memory *memory, remote_addr runtime_addr,
		       struct debug_offsets *ret_table);

/*
 * What they say if they are laid out like that, with what they lack added. 0; -EBADMSG
 * (a number that no offset can be), -EFAULT (not all of the layout could be read).
 *
 * Source: CPython Include/internal/pycore_debug_offsets.h, 3.13 to 3.15.
 */
int debug_offsets_convert(const struct debug_offsets *table,
			  const struct debug_offsets_layout *layout, struct py_build *ret_build);
