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
#include "sampler/cpython/base/loss.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/frames/frame_list.h"
#include "sampler/cpython/layout/offsets.h"

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

/* What the walks of frames_still.c, await_chain.h and racing.h share with those above. */

/*
 * f_executable and the words of a frame's stack are tagged references since 3.14; harmless before.
 */
enum { OBJECT_TAG_MASK = 3 };

/* A walk under way. */
struct frame_walk {
	const struct py_build *build;
	struct code_cache *codes;
	const struct code_clock *clock;
	struct frame_list *list;
	enum sample_loss loss; /* set with -EBADMSG */
	remote_addr loop_addr; /* of the frames to come, as frame_list.loop_addr */
};

/* Take the words from a copy of the frame, which has at least frame_head_bytes(). */
static inline struct frame_words frame_words(const struct py_offsets *offsets, const uint8_t *frame)
{
	uint64_t executable = field_u64(frame, offsets->frame.executable);

	if (offsets->frame.lasti != OFFSET_ABSENT)
		return (struct frame_words){
			.executable = executable,
			.previous = field_u64(frame, offsets->frame.previous),
			.lasti = field_i32(frame, offsets->frame.lasti),
			.state = field_u8(frame, offsets->frame.state),
			.stacktop = -1,
		};
	return (struct frame_words){
		.executable = executable & ~(uint64_t)OBJECT_TAG_MASK,
		.previous = field_u64(frame, offsets->frame.previous),
		.instr_ptr = field_u64(frame, offsets->frame.instr_ptr),
		.stacktop = offsets->frame.stacktop == OFFSET_ABSENT
				    ? -1
				    : field_i32(frame, offsets->frame.stacktop),
		.stackpointer = offsets->frame.stackpointer == OFFSET_ABSENT
					? 0
					: field_u64(frame, offsets->frame.stackpointer),
		.owner = field_u8(frame, offsets->frame.owner),
		.is_entry = offsets->frame.is_entry != OFFSET_ABSENT &&
			    field_u8(frame, offsets->frame.is_entry) != 0,
	};
}

/* Give up the walk for that reason: sets walk->loss, returns -EBADMSG. */
int walk_lost(struct frame_walk *walk, enum sample_loss loss);

/* Append a frame that was checked. 0, -EBADMSG as walk_lost(), -ENOMEM. */
int walk_append(struct frame_walk *walk, remote_addr addr, const struct frame_words *words,
		struct code *code);

/*
 * Append the frame whose words those are, by the code that they name; what has the instruction as an
 * index gets its address. 0; -ENOENT if they cannot be a frame's (the code is none, or the
 * instruction lies outside of it); the errors of walk_append(), -ESRCH, -EPERM.
 */
int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words);

/*
 * Append the frame at addr, which was read, as a walk does that follows `previous`; one that
 * is not shown is left out. 0; -EBADMSG (it cannot be a frame), -EAGAIN (it hangs on nobody),
 * -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
int walk_step(struct frame_walk *walk, remote_addr addr, struct frame_words *words);
