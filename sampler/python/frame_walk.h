/* SPDX-License-Identifier: MIT */
/*
 * What the two walkers of frames.h share: the words of a frame, and how a frame is
 * checked and put into the list.
 */
#pragma once

#include <limits.h>

#include "sampler/python/frames.h"

/*
 * f_executable and the words of a frame's stack are tagged references since 3.14; harmless before.
 */
enum { OBJECT_TAG_MASK = 3 };

/* The words of a frame that the walk looks at, out of a copy of it. */
struct frame_words {
	uint64_t executable;
	uint64_t previous;
	uint64_t instr_ptr; /* where there is lasti instead: 0 until walk_check() */
	int32_t lasti;
	uint8_t state;
	int32_t stacktop;
	uint64_t stackpointer; /* 0 before 3.14 */
	uint8_t owner;
	bool is_entry;
	bool across; /* a page border (page_border.h): the executable is not the copied one */
};

/* Take them from a copy of the frame, which has at least localsplus bytes. */
static inline struct frame_words frame_words(const struct py_offsets *offsets, const uint8_t *frame)
{
	uint64_t executable = field_u64(frame, offsets->frame.executable);

	if (offsets->frame.lasti != OFFSET_ABSENT)
		return (struct frame_words){
			.executable = executable,
			.previous = field_u64(frame, offsets->frame.previous),
			.lasti = field_i32(frame, offsets->frame.lasti),
			.state = field_u8(frame, offsets->frame.state),
			.stacktop = INT_MAX,
		};
	return (struct frame_words){
		.executable = executable & ~(uint64_t)OBJECT_TAG_MASK,
		.previous = field_u64(frame, offsets->frame.previous),
		.instr_ptr = field_u64(frame, offsets->frame.instr_ptr),
		.stacktop = offsets->frame.stacktop == OFFSET_ABSENT
				    ? INT_MAX
				    : field_i32(frame, offsets->frame.stacktop),
		.stackpointer = offsets->frame.stackpointer == OFFSET_ABSENT
					? 0
					: field_u64(frame, offsets->frame.stackpointer),
		.owner = field_u8(frame, offsets->frame.owner),
		.is_entry = offsets->frame.is_entry != OFFSET_ABSENT &&
			    field_u8(frame, offsets->frame.is_entry) != 0,
	};
}

/*
 * Whether the frame at addr has begun to be destroyed: its caller is the current frame by then.
 * CPython takes the locals off a frame before it drops them, and those that are still there are
 * below where a stack that is in use begins. A frame without locals does not tell, nor does any
 * before 3.13, nor one whose executable was copied with another page, and earlier than that.
 * Source: _PyFrame_ClearLocals(), Python/frame.c.
 */
static inline bool frame_cleared(const struct py_offsets *offsets, const struct code *code,
				 remote_addr addr, const struct frame_words *words)
{
	if (code->stack_offset <= offsets->frame.localsplus)
		return false;
	if (words->stackpointer != addr + offsets->frame.localsplus)
		return words->stacktop == 0;
	return words->across || !page_border_in_head(offsets, addr);
}

/* Give up the walk for that reason: sets walk->loss, returns -EBADMSG. */
int walk_lost(struct frame_walk *walk, enum sample_loss loss);

/*
 * The code that the words of a frame name; what has the instruction as an index gets its
 * address. 0; -ENOENT if they cannot be a frame's (the code is none, or the instruction
 * lies outside of it); -EBADMSG as walk_lost(), -ENOMEM, -ESRCH, -EPERM.
 */
int walk_check(struct frame_walk *walk, struct frame_words *words, struct code **ret_code);

/* Append a frame that was checked. 0, -EBADMSG as walk_lost(), -ENOMEM. */
int walk_append(struct frame_walk *walk, remote_addr addr, const struct frame_words *words,
		struct code *code);

/* Check and append. */
int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words);

/*
 * Check and append a frame of a link: a generator's, or one that an extension has linked,
 * which may run anything (executable.h). A frame that is not shown is left out. Errors of
 * walk_check().
 */
int walk_link(struct frame_walk *walk, remote_addr addr, struct frame_words *words);

/*
 * Append the frame at addr, which was read, as a walk does that follows `previous`; one that
 * is not shown is left out. 0; -EBADMSG (it cannot be a frame), -EAGAIN (it hangs on nobody),
 * -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
int walk_exact_step(struct frame_walk *walk, remote_addr addr, struct frame_words *words);

/* Whether nothing tells that the code of some frame of the list was there when it was copied. */
bool walk_has_new_code(const struct frame_walk *walk);
