/* SPDX-License-Identifier: MIT */
/*
 * Identifies the build of CPython that an interpreter belongs to: the offsets of its fields, by its
 * version or from the offsets that CPython 3.13 and newer carries itself (_Py_DebugOffsets, at the
 * start of its _PyRuntime). That struct does not say where its own fields are; they have moved
 * between minor versions, and within one before its first release. So a layout is judged by the
 * numbers that it yields.
 */
#pragma once

#include "sampler/cpython/layout/offsets.h"

/*
 * Fill ret_build for the interpreter whose _PyRuntime is at runtime_addr. version_hex is its
 * PY_VERSION_HEX, or 0 if unknown; a runtime with debug offsets states its version itself.
 *
 * Reads the interpreter's lists a bounded number of times. An interpreter that is still starting
 * has none; the layout of its version is then accepted if its numbers are plausible.
 *
 * Returns 0; -ENOTSUP with a message (an unknown version, or a build whose structs are not where
 * the table for its version has them); -EBADMSG with a message (debug offsets that are implausible
 * in every layout); -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Include/internal/pycore_debug_offsets.h, 3.13 to 3.15.
 */
int build_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
	       struct py_build *ret_build, struct message *reterr);

/* The first eight bytes of debug offsets. */
#define DEBUG_OFFSETS_COOKIE "xdebugpy"

/*
 * The place of each number in such a struct, in bytes from its start; OFFSET_ABSENT if the struct
 * does not have it. size is the size of the struct, which it does not state itself.
 */
struct debug_offsets_layout {
	uint32_t minor;
	uint32_t size;
	struct py_offsets at;
	struct py_tlbc tlbc_at;
};

/*
 * The layout of 3.minor, which is at least FIRST_MINOR_WITH_DEBUG_OFFSETS; beyond NEWEST_MINOR,
 * that of the newest.
 */
struct debug_offsets_layout debug_offsets_layout(uint32_t minor);
