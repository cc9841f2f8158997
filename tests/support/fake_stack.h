/* SPDX-License-Identifier: MIT */
/*
 * The stack of one thread of a fake CPython, built frame by frame as the
 * interpreter would, outermost first. What people should see is written down
 * along the way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/fake_python.h"

enum { FAKE_STACK_MAX_FRAMES = 256 };

struct fake_stack {
	struct fake_python *py;
	remote_addr thread_addr;
	remote_addr chunk_addr;	   /* the newest */
	remote_addr next_addr;	   /* where the next frame goes in it */
	remote_addr previous_addr; /* what the next frame hangs on; a shim is not a frame */
	remote_addr caller_addr;   /* the frame that was pushed last, or 0 */
	bool entered;		   /* the next frame was called from C */
	remote_addr expected[FAKE_STACK_MAX_FRAMES]; /* visible frames, outermost first */
	size_t nr_expected;
};

/* A new thread with a first chunk of chunk_bytes (0: none) that no frame is in. */
void fake_stack_init(struct fake_stack *stack, struct fake_python *py, uint64_t tid,
		     uint64_t chunk_bytes);

/* Call a function; its frame is executing. One of the functions above is its size away. */
remote_addr fake_stack_call(struct fake_stack *stack, remote_addr code_addr, uint32_t frame_words);

/* Let the next call come from a C function. */
void fake_stack_call_c(struct fake_stack *stack);

/* Resume a generator, whose frame lies on the heap. */
remote_addr fake_stack_resume(struct fake_stack *stack, remote_addr code_addr);

/*
 * Link a frame as an extension does: the one called last is inside of C, and what is called
 * next is called from there.
 */
remote_addr fake_stack_link(struct fake_stack *stack, remote_addr executable, uint8_t owner);

/* Begin a chunk: the next call's frame is its first. */
void fake_stack_new_chunk(struct fake_stack *stack, uint64_t chunk_bytes);

/* Tell the thread state. */
void fake_stack_finish(struct fake_stack *stack);

/*
 * Return from the frame that was called last, leaving its memory as the version
 * does; what is below executes again. caller_addr: of the frame below it.
 */
void fake_stack_pop(struct fake_stack *stack, remote_addr frame_addr, remote_addr caller_addr);
