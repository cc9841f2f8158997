/* SPDX-License-Identifier: MIT */
/*
 * The Python frames of a thread at the moment when its registers and its C stack were copied:
 * told by the copy, and not by a later look, at which a program that calls and returns every
 * microsecond has long moved on.
 *
 * Each call of the interpreter's loop is a C frame of the copy, with an entry inside
 * (dumped_entry.h). Exact are, in the copy: which loops there are; the Python frame that called
 * into C, as the next loop's entry names it; the next instruction of each loop, which
 * tells the function. What is not in the copy are the frames between that the loop runs without
 * calling itself. They lie in the thread's data stack, each as long as its code object says:
 * Where the later look has the leaf still, in the same place and running the same code, they are
 * its callers of then. Else they are those of the later look only if they fill the room to the
 * byte, if each names the one before as its caller, and if the last one's code names the leaf's
 * (call_names.h); and never of loops that were called for a generator, whose frame lies elsewhere
 * (generator_calls.h). Where nothing tells there is a hole behind the frames that are steady
 * (steady_frames.h).
 */
#pragma once

#include "sampler/call_names.h"
#include "sampler/code_index.h"
#include "sampler/loop_places.h"
#include "sampler/native_stacks.h"
#include "sampler/python/frame_list.h"
#include "sampler/steady_frames.h"

/* Loops in one stack; those outside of them are left out. A dump of 64 KiB has room for 300. */
#define DUMPED_STACK_MAX_LOOPS 512

/* What the next frames are told by; all of it is borrowed. */
struct dumped_stack {
	struct native_stacks *natives; /* what was unwound of the copy, with registers */
	struct stack_window *window;   /* the copy */
	struct stack_window *now;      /* the stack as it is by now; NULL: not known */
	struct loop_places *places;
	struct code_index *index;
	struct call_names *names;
	struct code_cache *codes;
	remote_addr thread_addr;	/* the thread state */
	const struct code_clock *clock; /* copied behind the copy */
	const struct frame_list *late;	/* the thread's stack of a moment later; empty: not known */
	const struct steady_frames *steady; /* of that, unless it is empty */
	struct code *hole;		    /* foreign: stands where frames may be missing */
};

/*
 * The frames into list, outermost first, with previous that tells where each loop begins, as
 * loop_entries_read() wants it of a copy, and *ret_nr_holes holes among them. 0; -EAGAIN (where
 * loops have their entries has not been learnt), -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
int dumped_stack_frames(const struct dumped_stack *stack, struct frame_list *list,
			uint32_t *ret_nr_holes);
