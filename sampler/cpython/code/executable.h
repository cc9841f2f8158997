/* SPDX-License-Identifier: MIT */
/*
 * What frames run that CPython has not made itself: extensions link frames from the C stack
 * or the heap whose executable is a code object, another of CPython's kinds of executables
 * (PyUnstable_EXECUTABLE_KIND_* of Include/cpython/pyframe.h), a tuple (name, file name, line), or
 * any other object. Of what is no code object only what people call it is told.
 *
 * An object is of a kind if its type has that name and is a static one: no Python code can
 * make such a type. The table PyUnstable_ExecutableKinds of 3.13 and newer says no more, and
 * is not there in 3.12: it has the addresses of four of these types (for builtins that of
 * `method`, not of `builtin_function_or_method`).
 *
 * No counter tells when such objects come and go, so each is described anew in every look that meets
 * it. A look has read ahead what the last one read (sampler/look_memory.h), so this costs no
 * system call. Programs without such frames pay for the first look at None, which all shims run,
 * alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"

/* A longer C string is cut after so many bytes and ends in "…". */
enum { EXECUTABLE_NAME_MAX_BYTES = 256 };

/*
 * So many addresses may have held an executable, about 1 kB of ours each. What is new beyond is not
 * taken (LOSS_CODE).
 */
#define MAX_EXECUTABLES (1u << 14)

/* Whether a frame with that executable is known to be not shown: NULL, None, 3.12's trampoline. */
static inline bool executable_is_nothing(const struct code_cache *codes, remote_addr addr)
{
	if (!addr)
		return true;
	for (uint32_t i = 0; i < codes->nr_nothings && i < MAX_NOTHINGS; i++)
		if (codes->nothings[i] == addr)
			return true;
	return false;
}

/*
 * The executable at addr for a frame of the look whose clock that is: a code object, or an entry
 * that is `foreign` and has a function and nothing else; NULL if its frames are not shown. A tuple
 * that is not (str, str, int) is called by its type, as is everything unknown: "<tuple>",
 * "<mod.Type>".
 *
 * 0; -EBADMSG or -EFAULT (there is no object), -EAGAIN (the frame is of an earlier moment, when
 * another object may have been there), -E2BIG (no room), -ENOMEM, -ESRCH, -EPERM. *ret_code is valid
 * as that of code_cache_get() is.
 */
int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);
