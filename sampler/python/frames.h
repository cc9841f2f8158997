/* SPDX-License-Identifier: MIT */
/*
 * The interpreter frames of one thread, by two walkers.
 *
 * frames_walk_up() is the sampler's. From 3.11 on a thread's frames lie one
 * behind the other in its data-stack chunks, so a copy of the chunks alone is
 * the stack at the instant of the copy: it starts at the first frame and steps
 * over each frame's size to the next. Nothing that has moved on meanwhile is
 * looked at. Frames that live elsewhere (generators in their heap objects, the
 * entry shims of 3.12+ on the C stack) are named by the `previous` of the frame
 * above them; copies of those ride along as links.
 *
 * Before 3.11 frames are objects of their own, and frames_walk_heap() takes the place
 * of frames_walk_up(): it follows `f_back` through copies that were taken, in one read
 * with the thread state, at the addresses where frames were found before. CPython uses
 * the memory of frames again at once, so few have to be looked for.
 *
 * frames_walk_exact() follows `previous` from the current frame down. It is
 * right whenever the thread stands still, and serves dumps and as the first
 * one's oracle in tests.
 *
 * Source: CPython 3.11–3.15 Include/internal/pycore_frame.h and
 * pycore_interpframe.h, Python/pystate.c (push_chunk, _PyThreadState_PopFrame).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/code.h"
#include "sampler/python/frame_list.h"
#include "sampler/python/offsets.h"
#include "sampler/python/stack_copy.h"
#include "sampler/sample.h"

struct frame_walk {
	const struct py_build *build;
	struct code_cache *codes;
	const struct code_clock *clock;
	struct stack_copy *copy;
	struct frame_list *list;
	remote_addr wanted_link_addr; /* set with -EAGAIN: copy this frame and walk again */
	uint32_t nr_late;      /* frames that frames_walk_heap() had to read behind the copy */
	enum sample_loss loss; /* set with any other error */
	bool has_new_code;     /* a code object is too new for the copy: copy again */
	bool trimmed;	       /* the innermost frames could not be told, and were left out */
};

/*
 * Walk the copied chunks upward. 0: list holds the live frames. -EAGAIN: the link
 * wanted_link_addr has to be copied first. -EBADMSG: the copy cannot be proven,
 * loss says why. -ENOMEM, -ESRCH, -EPERM.
 */
int frames_walk_up(struct frame_walk *walk);

/*
 * The same for frames that are objects. Frames that were not copied are read, and copied
 * from then on; nr_late tells how many. Errors of frames_walk_up(), but for -EAGAIN.
 */
int frames_walk_heap(struct frame_walk *walk);

/*
 * Follow `previous` from current_frame_addr to the bottom, through the memory and
 * for the build of codes; the frames, outermost first, into list (hidden ones
 * included).
 *
 * 0; -EAGAIN if the chain did not end where it must (the thread ran meanwhile),
 * -EBADMSG, -EFAULT, -E2BIG, -ENOMEM, -ESRCH, -EPERM; list then holds what was
 * walked, so far as it goes.
 */
int frames_walk_exact(struct code_cache *codes, const struct code_clock *clock,
		      remote_addr current_frame_addr, remote_addr base_frame_addr,
		      struct frame_list *list);

/* What a thread state says of a stack. All 0 where there is none. */
struct stack_ends {
	remote_addr current_frame_addr;
	remote_addr base_frame_addr; /* the sentinel below the outermost frame (3.15) */
	remote_addr newest_chunk_addr;
	remote_addr datastack_top_addr;
	int current_err; /* why the current frame is not known; 0 */
};

/*
 * The same through a memory that stands still and may lack pieces: a frame without a code
 * object to be read has code_cache_missing(), and where `previous` leads to nothing (an entry
 * frame lies on the C stack) the frames below are those that lie in the data-stack chunks
 * (stack_outline.h): then *ret_bridged. Errors of frames_walk_exact(), only if there is no
 * way on.
 */
int frames_walk_still(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged);
