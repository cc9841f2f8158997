/* SPDX-License-Identifier: MIT */
/*
 * Executables of frames that CPython did not make itself. Extensions link frames from the C stack
 * or the heap. The executable of these is a code object, another of CPython's kinds
 * (PyUnstable_EXECUTABLE_KIND_* of Include/cpython/pyframe.h), a tuple (name, file name, line), or
 * any other object. If it is not a code object, only its name and place are read.
 *
 * An object is of a kind if its type has that name and is static: Python code cannot create such a
 * type. The table PyUnstable_ExecutableKinds of 3.13 and newer adds nothing, and 3.12 does not have
 * it: it holds the addresses of four of these types (for builtins that of `method`, not of
 * `builtin_function_or_method`).
 *
 * No counter shows when such objects appear and go, so each is described anew in every look that
 * meets it. This costs no system call, since a look prefetches what the last one read
 * (sampler/look_memory.h). In programs without such frames, only the first look reads such an
 * object: None, which all shims run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/code/code.h"

/* A longer C string is cut to this many bytes and ends in "…". */
enum { EXECUTABLE_NAME_MAX_BYTES = 256 };

/*
 * Limit on addresses that have held an executable, about 1 kB each. Further ones are refused
 * (LOSS_CODE).
 */
#define MAX_EXECUTABLES (1u << 14)

/* Whether frames with that executable are known not to be shown: NULL, None, 3.12's trampoline. */
static inline bool executable_is_hidden(const struct code_cache *codes, remote_addr addr)
{
	if (!addr)
		return true;
	for (uint32_t i = 0; i < codes->nr_hidden_executables && i < MAX_HIDDEN_EXECUTABLES; i++)
		if (codes->hidden_executables[i] == addr)
			return true;
	return false;
}

/*
 * Get the executable at addr for a frame of the look with that clock: the entry of a code object;
 * an entry with is_not_code, which has only a function; or NULL if its frames are not shown. A
 * tuple that is not (str, str, int) and any unknown object is named after its type: "<tuple>",
 * "<mod.Type>".
 *
 * *ret_code is valid as with code_cache_get(). Returns 0; -EBADMSG or -EFAULT (there is no object);
 * -EAGAIN (the frame is older, and another object may have been there); -E2BIG (no room); -ENOMEM,
 * -ESRCH, -EPERM.
 */
int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);
