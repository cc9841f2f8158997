/* SPDX-License-Identifier: MIT */
/*
 * Which frames of Python the interpreter's loop was called for, and where in the C stack that
 * call is. CPython keeps a structure of its own in the loop's C frame:
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
	bool is_entry; /* C code called the loop for this frame, and no frame of Python's did */
	remote_addr c_addr; /* of the structure in the loop's C frame; 0: not told */
};

/* One _PyCFrame. */
struct loop_place {
	remote_addr addr;
	remote_addr current_frame; /* that it names; 0 in 3.10 */
};

/* Those of a thread, innermost first. */
struct loop_chain {
	const struct loop_place *places;
	size_t nr;
	bool is_whole; /* nothing is missing at the outer end */
};

/* Whether a version has such, and needs them to tell where its loops are. */
bool loop_entries_need_chain(const struct py_build *build);

/*
 * *ret_entries has one for each frame of the list, allocated; free() it. chain is of the same moment;
 * NULL: not needed, or not known. is_whole: the list goes down to the outermost frame. 0 or -ENOMEM.
 */
int loop_entries_take(const struct code_cache *codes, const struct loop_chain *chain,
		      const struct frame_list *list, bool is_whole,
		      struct loop_entry **ret_entries);

/*
 * The same with the chain of the thread state at thread_addr, as it is now. What cannot be read is not
 * told. 0; -ENOMEM, -ESRCH, -EPERM.
 */
int loop_entries_read(const struct code_cache *codes, remote_addr thread_addr,
		      const struct frame_list *list, bool is_whole,
		      struct loop_entry **ret_entries);
