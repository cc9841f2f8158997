/* SPDX-License-Identifier: MIT */
/*
 * The entry frame that each call of the interpreter's loop has in its C frame since 3.12, in a
 * copy of the stack: it names the Python frame that called into C. Source: _PyInterpreterFrame
 * and _PyEval_EvalFrameDefault() of CPython.
 */
#pragma once

#include <stdbool.h>

#include "sampler/python/code.h"
#include "symbols/stack_window.h"

/* Whether there is one at addr; *ret_previous is the frame that it names, or 0. */
bool entry_frame_read(const struct code_cache *codes, struct stack_window *window, remote_addr addr,
		      remote_addr *ret_previous);

/*
 * The next one from addr on, up to the end of the copy, as far as that is looked through. False:
 * there is none.
 */
bool entry_frame_find(const struct code_cache *codes, struct stack_window *window, remote_addr addr,
		      remote_addr *ret_entry_addr);
