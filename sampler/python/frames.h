/* SPDX-License-Identifier: MIT */
/*
 * The interpreter frames of one thread that stands still: from its current frame along `previous`
 * (before 3.11: f_back) to the outermost one. There is no other walk: generators, coroutines, frames
 * that extensions have linked, frames in several data-stack chunks are all on that path, and
 * nothing else is.
 *
 * A stack is whole at its known end only. An instant may lie between the two stores of a yield or of
 * a call, when a frame hangs on nothing for some nanoseconds:
 *
 *   3.15       the walk ends at the thread's base_frame
 *   3.12-3.14  it ends behind an entry frame: C called the loop, for the first time
 *   3.11       it ends behind a frame that C called the loop for
 *   to 3.10    it ends at a frame without f_back, which is set before the frame becomes current
 *
 * 3.11 and 3.12 name the current frame in a _PyCFrame on the C stack, one for each call of the loop,
 * which is the thread's for some instructions before its words are set. So the thread must have as
 * many of them as the stack has entries.
 *
 * A call makes the new frame current before it sets `previous` (3.11), which until then leads where
 * an earlier frame in the same place led. So a frame that has not begun must lie directly behind its
 * caller's, or first in its chunk.
 *
 * Source: CPython 3.11-3.15 Include/internal/pycore_frame.h and pycore_interpframe.h,
 * Python/ceval.c; 3.6-3.10 Objects/genobject.c (gen_send_ex()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/code.h"
#include "sampler/python/frame_list.h"
#include "sampler/python/offsets.h"
#include "sampler/sample.h"

/* What a thread state says of a stack. All 0 where there is none. */
struct stack_ends {
	remote_addr current_frame_addr;
	remote_addr base_frame_addr; /* the sentinel below the outermost frame (3.15) */
	remote_addr newest_chunk_addr;
	remote_addr datastack_top_addr;
	remote_addr cframe_addr; /* the innermost _PyCFrame (3.10 to 3.12) */
	remote_addr thread_addr; /* the thread state, which has the outermost one */
	bool has_nr_loops;	 /* how many there are on the C stack was counted: */
	uint32_t nr_loops;
	int current_err; /* why the current frame is not known; 0 */
};

/*
 * What the thread state at thread_addr says, of which thread_head_bytes() were read; of 3.11 and 3.12 one more
 * word is read through memory, and may give current_err: -EFAULT, -ESRCH, -EPERM.
 */
struct stack_ends stack_ends_read(struct remote_memory *memory, const struct py_build *build,
				  remote_addr thread_addr, const uint8_t *state);

/* The same without the current frame where the thread state does not have that. */
struct stack_ends stack_ends_take(const struct py_build *build, remote_addr thread_addr,
				  const uint8_t *state);

/* Frames that need not be walked: those below anchor_addr are what they were. */
struct kept_frames {
	remote_addr anchor_addr; /* 0: none are kept */
	uint32_t nr;		 /* so many outermost frames of the list */
};

/*
 * Walk from the current frame to the end, through the memory and for the build of codes; the
 * frames, outermost first, into list (hidden ones included). kept, which may be NULL, is set to
 * none if the anchor was not met; then all were walked.
 *
 * 0; -EBADMSG and *ret_loss: LOSS_UNFINISHED (it does not begin or end where it must), LOSS_CODE (no room
 * for what a frame runs), LOSS_TOO_DEEP; -ENOMEM, -ESRCH, -EPERM. The list then holds what was
 * walked, so far as it goes.
 */
int frames_walk(struct code_cache *codes, const struct code_clock *clock,
		const struct stack_ends *ends, struct kept_frames *kept, struct frame_list *list,
		enum sample_loss *ret_loss);

/*
 * The same of a walk that was made before: the list has its steps, from the current frame on to where it
 * ended. clock->is_past. Errors of frames_walk().
 */
int frames_take(struct code_cache *codes, const struct code_clock *clock,
		const struct stack_ends *ends, struct frame_list *list, enum sample_loss *ret_loss);

/*
 * The same through a memory that stands still and may lack pieces: a frame without a code
 * object to be read has code_cache_missing(), and where `previous` leads to nothing (an entry
 * frame lies on the C stack) the frames below are those that lie in the data-stack chunks
 * (frames_still.c): then *ret_bridged. 0; -EAGAIN (it does not end where it must), -EBADMSG,
 * -EFAULT, -E2BIG, -ENOMEM; only if there is no way on.
 */
int frames_walk_still(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged);
