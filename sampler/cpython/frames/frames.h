/* SPDX-License-Identifier: MIT */
/*
 * Walks the interpreter frames of one thread that stands still: from its current frame along
 * `previous` (before 3.11: f_back) to the outermost one. One walk covers everything: generators,
 * coroutines, frames linked by extensions and frames in several data-stack chunks are all on that
 * path, and nothing else is.
 *
 * A stack is whole only if the walk ends at a known end. The instant may be between the two stores
 * of a yield or a call, when a frame has no link to its caller for some nanoseconds:
 *
 *   3.15       the walk ends at the thread's base_frame
 *   3.12-3.14  it ends after an entry frame, that of the first call of the loop from C
 *   3.11       it ends after a frame for which C called the loop
 *   to 3.10    it ends at a frame without f_back, which is set before the frame becomes current
 *
 * 3.11 and 3.12 name the current frame in a _PyCFrame on the C stack, one per call of the loop. For
 * some instructions the thread already has a new _PyCFrame whose words are not set yet. So the
 * thread must have as many of them as the stack has entries.
 *
 * A call makes the new frame current before it sets `previous` (3.11). Until then `previous` is
 * left over from an earlier frame at the same place. So a frame that has not begun must directly
 * follow its caller's, or be the first in its chunk.
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

/* Deeper stacks are dropped: 1 Mi frames are about 100 MB of data stack. */
#define MAX_FRAMES (1u << 20)

/* The words of a frame that a walk needs, taken from a copy of the frame. */
struct frame_words {
	uint64_t executable;
	uint64_t previous;
	uint64_t instr_ptr;    /* with lasti (before 3.11): 0 until walk_frame() */
	uint64_t stackpointer; /* 0 before 3.14 */
	uint64_t identity;     /* of the executable, in an earlier walk: code.h */
	int32_t lasti;
	int32_t stacktop; /* 3.11-3.13; else -1: it executes */
	uint8_t state;
	uint8_t owner;
	bool is_entry;
};

/* A frame between the current one and the outermost one. */
struct frame_step {
	remote_addr addr;
	struct frame_words words;
};

/* A frame that was walked. */
struct walked_frame {
	remote_addr addr;
	uint64_t previous;
	uint64_t executable; /* tag bits masked */
	uint64_t instr_ptr;
	struct code *code;
	remote_addr loop_addr;	/* like frame_list.loop_addr, for the loop that executes it */
	uint32_t code_nr_loads; /* of code, when the frame was walked */
	uint32_t nr_begun;	/* how many frames up to this one are not hidden */
	bool is_entry;		/* C called the loop for it; known in 3.11 only */
	bool on_stack;		/* on the data stack, judging by its owner and code */
	bool is_new;		/* it has not begun */
	bool hidden;		/* it has not begun, or is being destroyed; not shown to users */
};

/*
 * The frames of one thread as found by the last walk, outermost first. The list is kept from tick
 * to tick, so that frames that have not moved need not be checked again. Empty if all zero.
 */
struct frame_list {
	struct walked_frame *frames;
	uint32_t nr_frames; /* in the last walk, including hidden ones */
	uint32_t max_frames;
	/*
	 * What the innermost call of the interpreter's loop has on the C stack: its _PyCFrame (3.10
	 * to 3.12) or its entry frame (3.13 and newer). 0 if there is none, or it is unknown.
	 */
	remote_addr loop_addr;
	uint32_t nr_known;	  /* entries that hold a frame of this or an earlier walk */
	uint32_t nr_unchanged;	  /* outermost frames that are as in the last walk */
	struct frame_step *steps; /* of the current walk, innermost first; owned */
	uint32_t nr_steps, max_steps;
};

/* Whether users see that frame of the list: it has begun and is not being destroyed. */
static inline bool frame_visible(const struct frame_list *list, uint32_t i)
{
	return !list->frames[i].hidden;
}

/* Free the list and leave it empty; codes belong to the cache. Accepts NULL. */
void frame_list_done(struct frame_list *list);

/*
 * Begin a walk: shorten the list to its nr_kept outermost frames. The rest of its contents stays
 * for comparison with the new walk.
 */
void frame_list_begin(struct frame_list *list, uint32_t nr_kept);

/* Append a copy of frame. Returns 0, -E2BIG (it would exceed MAX_FRAMES) or -ENOMEM. */
int frame_list_append(struct frame_list *list, const struct walked_frame *frame);

/*
 * Between two walks: shrink the list if it has at least four times the room that twice nr_frames
 * needs. Its frames stay; what an earlier walk left beyond the new size is forgotten.
 */
void frame_list_fit(struct frame_list *list, uint32_t nr_frames);

/* Append a step of a walk. Returns 0 or -ENOMEM. */
int frame_list_add_step(struct frame_list *list, remote_addr addr, const struct frame_words *words);

/* Mark all codes in the list as in use, including those left from an earlier walk. */
void frame_list_use_codes(const struct frame_list *list);

/* The number of frames up to and including the one at addr; 0 if it is not in the list. */
uint32_t frame_list_find(const struct frame_list *list, remote_addr addr);

/* What a thread state says about its stack. Members are 0 if the version does not have them. */
struct stack_ends {
	remote_addr current_frame_addr;
	remote_addr base_frame_addr; /* the sentinel below the outermost frame (3.15) */
	remote_addr newest_chunk_addr;
	remote_addr datastack_top_addr;
	remote_addr cframe_addr; /* innermost _PyCFrame (3.10 to 3.12) */
	remote_addr thread_addr; /* the thread state, which holds the outermost _PyCFrame */
	bool has_nr_loops;	 /* nr_loops is the number of those on the C stack */
	uint32_t nr_loops;
	int current_err; /* why the current frame is unknown, or 0 */
};

/*
 * Read the ends of a stack. state has the first thread_head_bytes() of the thread state at
 * thread_addr. In 3.11 and 3.12 one more word is read through memory; an error of that read becomes
 * current_err: -EFAULT, -ESRCH, -EPERM.
 */
struct stack_ends stack_ends_read(struct remote_memory *memory, const struct py_build *build,
				  remote_addr thread_addr, const uint8_t *state);

/* The same, without the current frame if the thread state does not hold it (3.11, 3.12). */
struct stack_ends stack_ends_from_copy(const struct py_build *build, remote_addr thread_addr,
				       const uint8_t *state);

/* Frames that need not be walked: those below the frame at anchor_addr are unchanged. */
struct kept_frames {
	remote_addr anchor_addr; /* 0: no frames are kept */
	uint32_t nr;		 /* number of outermost frames of the list */
};

/*
 * Walk from the current frame to the end, with the memory and build of codes, and put the frames
 * into list, outermost first, including hidden ones. If kept (which may be NULL) names an anchor
 * that was not met, it is cleared and all frames were walked.
 *
 * Returns 0; -EBADMSG and *ret_loss: LOSS_UNFINISHED (the stack does not begin or end where it
 * must), LOSS_CODE (no room for what a frame runs), LOSS_TOO_DEEP; -ENOMEM, -ESRCH, -EPERM. After
 * an error the list holds the frames walked so far.
 */
int frames_walk(struct code_cache *codes, const struct code_clock *clock,
		const struct stack_ends *ends, struct kept_frames *kept, struct frame_list *list,
		enum sample_loss *ret_loss);

/*
 * The same for a walk whose links were followed earlier: the list has its steps, from the current
 * frame to the end. clock->frames_are_older must be set. Errors of frames_walk().
 */
int frames_walk_steps(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list,
		      enum sample_loss *ret_loss);

/*
 * The same in a memory that stands still but may lack pieces. A frame whose code object cannot be
 * read gets code_cache_missing(). If `previous` leads to a missing piece (an entry frame is on the
 * C stack), the frames below are those found in the data-stack chunks, and *ret_bridged is set.
 * Returns 0; or, only if there is no way on: -EAGAIN (the stack does not end where it must),
 * -EBADMSG, -EFAULT, -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
int frames_walk_core(struct code_cache *codes, const struct code_clock *clock,
		     const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged);

/* For walks along other links: of awaited coroutines, and of copied data stacks. */

/*
 * f_executable and the words of a frame's stack are tagged references since 3.14. Masking is
 * harmless before.
 */
enum { OBJECT_TAG_MASK = 3 };

/* The state of a walk. */
struct frame_walk {
	const struct py_build *build;
	struct code_cache *codes;
	const struct code_clock *clock;
	struct frame_list *list;
	enum sample_loss loss; /* set with -EBADMSG */
	remote_addr loop_addr; /* of the next frames, like frame_list.loop_addr */
};

/* Take the words from a copy of a frame, of at least frame_head_bytes(). */
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

/* Give up the walk for that reason: set walk->loss and return -EBADMSG. */
int walk_lost(struct frame_walk *walk, enum sample_loss loss);

/*
 * Append the frame with those words, run by the code that they name. An instruction index (lasti)
 * is converted to an address. Returns 0; -ENOENT if they cannot be a frame's (no code object, or an
 * instruction outside of it); -EBADMSG as walk_lost(); -ENOMEM, -ESRCH, -EPERM.
 */
int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words);
