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
#include "sampler/cpython/base/frame.h"
#include "sampler/cpython/code/code.h"
#include "sampler/cpython/layout/offsets.h"

/* Deeper stacks are not sampled: 1 Mi frames are about 100 MB of data stack. */
#define MAX_FRAMES (1u << 20)

/* The words of a frame that a walk looks at, out of a copy of it. */
struct frame_words {
	uint64_t executable;
	uint64_t previous;
	uint64_t instr_ptr;    /* where there is lasti instead: 0 until walk_frame() */
	uint64_t stackpointer; /* 0 before 3.14 */
	uint64_t identity;     /* of the executable, of a walk that was made before: code.h */
	int32_t lasti;
	int32_t stacktop; /* 3.11-3.13; -1 elsewhere, too: it executes */
	uint8_t state;
	uint8_t owner;
	bool is_entry;
};

/* A frame on the way from the current one to the outermost one. */
struct frame_step {
	remote_addr addr;
	struct frame_words words;
};

/* One frame that was walked over. */
struct walked_frame {
	remote_addr addr;
	uint64_t previous;
	uint64_t executable; /* tag bits masked */
	uint64_t instr_ptr;
	struct code *code;
	remote_addr loop_addr;	/* as that of the list, of the loop that executes it */
	uint32_t code_nr_loads; /* of code when the frame was walked */
	uint32_t nr_begun;	/* of the frames up to this one, so many are not hidden */
	bool is_entry;		/* C called the loop for it; not told but by 3.11 */
	bool on_stack;		/* on the data stack, so far as its owner and its code tell */
	bool is_new;		/* has not begun */
	bool hidden;		/* has not begun, or is cleared: not part of what people see */
};

/*
 * The frames of one thread as the last walk found them, outermost first; kept from tick to tick, so
 * that what stands where it stood needs no second look. All zero it is empty.
 */
struct frame_list {
	struct walked_frame *frames;
	uint32_t nr_frames; /* of the last walk; hidden ones included */
	uint32_t max_frames;
	/*
	 * What the innermost call of the interpreter's loop has on the C stack: its _PyCFrame (3.10
	 * to 3.12), its entry frame (3.13 and newer). 0: there is none, or none is told.
	 */
	remote_addr loop_addr;
	uint32_t nr_known;	  /* entries that hold something of an earlier walk */
	uint32_t nr_unchanged;	  /* outermost frames that are what they were in the last walk */
	struct frame_step *steps; /* of the walk under way, innermost first; owned */
	uint32_t nr_steps, max_steps;
};

/* Whether people see that frame of the list: it has begun and is not being destroyed. */
static inline bool frame_visible(const struct frame_list *list, uint32_t i)
{
	return !list->frames[i].hidden;
}

/* Free the list, which is empty then; codes are the cache's. Accepts NULL. */
void frame_list_done(struct frame_list *list);

/*
 * Begin a walk: the list has its outermost nr_kept frames alone, and what it held beyond is what
 * the walk is compared with.
 */
void frame_list_begin(struct frame_list *list, uint32_t nr_kept);

/* Append a copy of frame. 0; -E2BIG (it would be the MAX_FRAMES + 1st), -ENOMEM. */
int frame_list_append(struct frame_list *list, const struct walked_frame *frame);

/*
 * Between two walks: give back room if there is four times as much as twice nr_frames needs. What
 * the list holds stays; of an earlier walk, what is beyond is forgotten.
 */
void frame_list_fit(struct frame_list *list, uint32_t nr_frames);

/* Append a step of a walk. 0 or -ENOMEM. */
int frame_list_add_step(struct frame_list *list, remote_addr addr, const struct frame_words *words);

/* Have all codes that the list names, also those of an earlier walk, be in use. */
void frame_list_use_codes(const struct frame_list *list);

/* The number of frames up to the one at addr, or 0. */
uint32_t frame_list_find(const struct frame_list *list, remote_addr addr);

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
 * frame lies on the C stack) the frames below are those that lie in the data-stack chunks: then
 * *ret_bridged. 0; -EAGAIN (it does not end where it must), -EBADMSG,
 * -EFAULT, -E2BIG, -ENOMEM; only if there is no way on.
 */
int frames_walk_still(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged);

/* What the walks of asyncio_task.c and racing.c share with those above. */

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
		.stackpointer = optional_u64(frame, offsets->frame.stackpointer),
		.owner = field_u8(frame, offsets->frame.owner),
		.is_entry = offsets->frame.is_entry != OFFSET_ABSENT &&
			    field_u8(frame, offsets->frame.is_entry) != 0,
	};
}

/* Give up the walk for that reason: sets walk->loss, returns -EBADMSG. */
int walk_lost(struct frame_walk *walk, enum sample_loss loss);

/*
 * Append the frame whose words those are, by the code that they name; what has the instruction as an
 * index gets its address. 0; -ENOENT if they cannot be a frame's (the code is none, or the
 * instruction lies outside of it); -EBADMSG as walk_lost(), -ENOMEM, -ESRCH, -EPERM.
 */
int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words);
