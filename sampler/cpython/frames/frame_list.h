/* SPDX-License-Identifier: MIT */
/*
 * The frames of one thread as the last walk found them, kept from tick to tick so
 * that what stands where it stood needs no second look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"

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

/* The frames of one thread; kept from tick to tick, outermost first. All zero it is empty. */
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
	bool changed;		  /* a frame that is not was put into the list by this walk */
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

/* Turn the list around: a walk that follows `previous` comes by the innermost one first. */
void frame_list_reverse(struct frame_list *list);

/* The number of frames up to the one at addr, or 0; the topmost max_frames are looked at. */
uint32_t frame_list_find(const struct frame_list *list, remote_addr addr, uint32_t max_frames);
