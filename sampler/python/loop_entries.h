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

#include "sampler/python/code.h"
#include "sampler/python/frame_list.h"

struct loop_entry {
	bool is_entry; /* C code called the loop for this frame, and no frame of Python's did */
	remote_addr c_addr; /* of the structure in the loop's C frame; 0: not told */
};

/* What stands for the thread state of a list that dumped_stack_frames() has made. */
#define LOOP_ENTRIES_COPIED ((remote_addr)0)

/*
 * *ret_entries has one for each frame of the list, allocated; free() it. thread_addr is its
 * thread state; or LOOP_ENTRIES_COPIED: of each call the first frame has c_addr for its caller, in
 * every version. is_whole: the list goes down to the outermost frame. What cannot be read is not
 * told. 0; -ENOMEM, -ESRCH, -EPERM.
 */
int loop_entries_read(const struct code_cache *codes, remote_addr thread_addr,
		      const struct frame_list *list, bool is_whole,
		      struct loop_entry **ret_entries);
