/* SPDX-License-Identifier: MIT */
/*
 * Which build of CPython an interpreter is: where its fields lie, by its version or by the offsets
 * that a CPython of 3.13 or newer carries itself: _Py_DebugOffsets, at the start of its _PyRuntime.
 * The struct does not say where its fields stand; they moved between minor versions, and within one
 * before its first release. So a layout is judged by what it makes of the numbers.
 */
#pragma once

#include "sampler/cpython/layout/offsets.h"

/*
 * Fill ret_build for the interpreter whose _PyRuntime lies at runtime_addr.
 * version_hex is its PY_VERSION_HEX if that is known from elsewhere, else 0: a
 * runtime that carries debug offsets says it itself.
 *
 * 0; -ENOTSUP with a sentence (a version that is not known, or a build that the
 * interpreter shows to be another one than the table is of), -EBADMSG with a sentence
 * (debug offsets that make no sense in any layout), -EFAULT, -ESRCH, -EPERM. Reads the
 * interpreter's lists a bounded number of times; one that is still starting has none, and
 * its version's own layout is then taken by its numbers alone.
 *
 * Source: CPython Include/internal/pycore_debug_offsets.h, 3.13 to 3.15.
 */
int build_load(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
	       struct py_build *ret_build, struct message *reterr);

/* The eight bytes that debug offsets begin with. */
#define DEBUG_OFFSETS_COOKIE "xdebugpy"

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
