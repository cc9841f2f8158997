/* SPDX-License-Identifier: MIT */
/*
 * The words of a frame: its variables, and the values of its evaluation stack. While a frame runs
 * C code, most versions do not store how high that stack is. What is below the handler of the
 * current instruction is alive for certain, and all that a `with` statement keeps is there.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/offsets.h"

/* Limit on the words of a frame; a larger frame is not read. */
enum { VALUE_STACK_MAX_WORDS = 4096 };

struct value_stack {
	uint32_t nr_variables; /* the first words */
	uint32_t nr_alive;     /* words that are in use for certain, variables included */
	uint32_t nr_words;     /* of all, some of which may be left from earlier */
	uint64_t words[VALUE_STACK_MAX_WORDS]; /* without tag bits */
};

/*
 * Read the words of a frame that executes its code. Returns 0; -EBADMSG (frame and code object do
 * not match); -E2BIG (VALUE_STACK_MAX_WORDS); -ENOTSUP (the version is not known for it); -ENOMEM,
 * -EFAULT, -ESRCH, -EPERM.
 *
 * Source: CPython Include/internal/pycore_frame.h (3.11 and newer); Include/frameobject.h,
 * Objects/frameobject.c: PyFrame_BlockSetup() (before).
 */
int value_stack_read(struct remote_memory *memory, const struct py_build *build,
		     const struct walked_frame *frame, struct value_stack *ret_stack);
