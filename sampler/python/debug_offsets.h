/* SPDX-License-Identifier: MIT */
/*
 * The offsets that a CPython of 3.13 or newer carries itself: _Py_DebugOffsets, at the
 * start of its _PyRuntime.
 */
#pragma once

#include "sampler/python/offsets.h"

/* The eight bytes it begins with. */
#define DEBUG_OFFSETS_COOKIE "xdebugpy"

/*
 * Fill ret_build from the debug offsets at runtime_addr, with what they lack added;
 * whether the numbers can be true is offsets_load()'s to check.
 *
 * 0; -ENOENT (there is no cookie: an older version, or no runtime), -ENOTSUP with a
 * sentence (a version or flavour that is not supported), -EBADMSG (a number that no
 * offset can be), -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Include/internal/pycore_debug_offsets.h, 3.13 to 3.15.
 */
int debug_offsets_load(struct remote_memory *memory, remote_addr runtime_addr,
		       struct py_build *ret_build, struct message *reterr);
