/* SPDX-License-Identifier: MIT */
/*
 * What each call of the interpreter's loop has in its C frame, and is known by in a copy of the
 * stack: its entry.
 *
 *   3.12+      the _PyInterpreterFrame entry_frame: its caller is the Python frame that called
 *              into C, and it is itself the caller of the first frame that the loop runs
 *   3.11       the _PyCFrame cframe, which names the Python frame that the loop runs, and the
 *              cframe of the loop around it; the outermost one names that of the thread state
 *
 * Source: _PyEval_EvalFrameDefault() of CPython.
 */
#pragma once

#include <stdbool.h>

#include "sampler/dumped_stack.h"

struct dumped_entry {
	remote_addr previous;	 /* the Python frame that called into C; 0: none, or not known */
	remote_addr caller_addr; /* what the first frame of the loop names as its caller */
	remote_addr leaf_addr;	 /* the Python frame that the loop runs; 0: not told */
	remote_addr outer_addr; /* the next entry further out, in no C frame at last; 0: not told */
	remote_addr link_addr;	/* of the word that leads outwards: none of the loop's own */
};

/* Whether the interpreter has entries of which that is known. */
bool dumped_entry_is_told(const struct py_build *build);

/*
 * Whether there is one at addr. Looked at are codes, window and thread_addr of the stack. What lies
 * beyond the end of the copy is not known: then no frame has that caller_addr.
 */
bool dumped_entry_read(const struct dumped_stack *stack, remote_addr addr,
		       struct dumped_entry *ret_entry);

/*
 * The next one from addr on, up to the end of the copy, as far as that is looked through. False:
 * there is none.
 */
bool dumped_entry_find(const struct dumped_stack *stack, remote_addr addr,
		       remote_addr *ret_entry_addr);
