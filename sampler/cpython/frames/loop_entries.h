/* SPDX-License-Identifier: MIT */
/*
 * Finds the Python frames for which C code called the interpreter's loop, and where on the C stack
 * each call is. CPython keeps a structure in the loop's C frame:
 *
 *   3.12+      the _PyInterpreterFrame entry_frame, the frame's caller (3.12 to 3.15,
 *              Python/ceval.c, _PyEval_EvalFrameDefault())
 *   3.11       the _PyCFrame, which names the innermost frame of the call
 *   3.10       the CFrame, one for each frame
 *   before     nothing
 */
#pragma once

#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frames.h"

struct loop_entry {
	bool is_entry;	    /* C code, and not a Python frame, called the loop for this frame */
	remote_addr c_addr; /* of the structure in the loop's C frame; 0 if unknown */
};

/* A _PyCFrame. */
struct loop_place {
	remote_addr addr;
	remote_addr current_frame; /* the frame that it names; 0 in 3.10 */
};

/* The _PyCFrames of a thread, innermost first. */
struct loop_chain {
	const struct loop_place *places;
	size_t nr;
	bool is_whole; /* it reaches the outermost one */
};

/* Whether the version has a chain of _PyCFrames and needs it to locate calls of the loop. */
bool loop_entries_need_chain(const struct py_build *build);

/*
 * *ret_entries gets one entry for each frame of the list; free() it. chain is of the same moment,
 * or NULL if it is not needed or unknown. is_whole: the list reaches the outermost frame. Returns 0
 * or -ENOMEM.
 */
int loop_entries_from_chain(const struct code_cache *codes, const struct loop_chain *chain,
			    const struct frame_list *list, bool is_whole,
			    struct loop_entry **ret_entries);

/*
 * The same with the chain read now from the thread state at thread_addr. What cannot be read stays
 * unknown. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
int loop_entries_read(const struct code_cache *codes, remote_addr thread_addr,
		      const struct frame_list *list, bool is_whole,
		      struct loop_entry **ret_entries);
