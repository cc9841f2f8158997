/* SPDX-License-Identifier: MIT */
/*
 * What the walks of frames.h and of await_chain.h share: the words of a frame, and how a frame is
 * checked and put into a list.
 */
#pragma once

#include "sampler/python/frames.h"

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
