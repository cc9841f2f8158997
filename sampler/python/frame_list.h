/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread as the last walk found them, kept from tick to tick so
 * that what stands where it stood needs no second look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/code.h"

/* Deeper stacks are not sampled: 1 Mi frames are about 100 MB of data stack. */
#define MAX_FRAMES (1u << 20)

/* stacktop of a frame that executes, or is inside C. */
enum { STACKTOP_EXECUTING = -1 };

/* One frame that was walked over. */
struct walked_frame {
	remote_addr addr;
	uint64_t previous;
	uint64_t executable; /* tag bits masked */
	uint64_t instr_ptr;
	struct code *code;
	uint32_t code_nr_loads; /* of code when the frame was walked */
	int32_t stacktop;	/* -1: executing (3.11–3.13) */
	uint32_t nr_begun;	/* of the frames up to this one, so many are not hidden */
	uint32_t jumped_by;	/* index of the frame whose links jump over this one: it is dying */
	bool is_entry;		/* C called the loop for it; not told but by 3.11 */
	bool cleared;		/* its locals are being destroyed (3.13 and newer) */
	bool across;		/* a page border: its bytes alone do not tell that it lives */
	bool hidden;		/* has not begun, or is cleared: not part of what people see */
};

#define NOT_JUMPED UINT32_MAX

/* The frames of one thread; kept from tick to tick, outermost first. All zero it is empty. */
struct frame_list {
	struct walked_frame *frames;
	uint32_t nr_frames; /* of the last walk; dying and hidden ones included */
	uint32_t max_frames;
	uint32_t nr_known;	  /* entries that hold something of an earlier walk */
	uint32_t nr_plain;	  /* outermost frames that hang directly on each other */
	struct code_clock walked; /* of the last walk, if that was complete; else its tick is 0 */
	uint32_t nr_unchanged;	  /* outermost frames that are what they were in the last walk */
	bool changed;		  /* a frame that is not was put into the list by this walk */
	bool has_dying;		  /* some frame is jumped over */
	bool has_foreign;	  /* some frame's executable is no code object */
};

/* Whether people see that frame of the list: it has begun and is not dying. */
static inline bool frame_visible(const struct frame_list *list, uint32_t i)
{
	return !list->frames[i].hidden && list->frames[i].jumped_by >= list->nr_frames;
}

/* Free the list, which is empty then; codes are the cache's. Accepts NULL. */
void frame_list_done(struct frame_list *list);

/* Begin a walk: the list is empty, and what it held is what the walk is compared with. */
void frame_list_begin(struct frame_list *list);

/* Append a copy of frame. 0; -E2BIG (it would be the MAX_FRAMES + 1st), -ENOMEM. */
int frame_list_append(struct frame_list *list, const struct walked_frame *frame);

/*
 * Give back room if there is four times as much as twice nr_frames needs. What the list holds
 * stays; of an earlier walk, what is beyond is forgotten.
 */
void frame_list_fit(struct frame_list *list, uint32_t nr_frames);

/* Have all codes that the list names, also those of an earlier walk, be in use. */
void frame_list_use_codes(const struct frame_list *list);

/* Turn the list around: a walk that follows `previous` comes by the innermost one first. */
void frame_list_reverse(struct frame_list *list);

/* The number of frames up to the one at addr, or 0; the topmost max_frames are looked at. */
uint32_t frame_list_find(const struct frame_list *list, remote_addr addr, uint32_t max_frames);

/* How many frames there are up to the last one that executes; 0 if none does. */
uint32_t frame_list_nr_to_executing(const struct frame_list *list);
