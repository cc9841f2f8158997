/* SPDX-License-Identifier: MIT */
/*
 * The stack of one thread of a fake CPython, built frame by frame as the interpreter does,
 * outermost first. Records along the way which frames a profiler should show.
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
	remote_addr chunk_addr;	   /* the newest chunk */
	remote_addr next_addr;	   /* address of the next frame in the chunk */
	remote_addr previous_addr; /* the next frame's previous pointer; may be a shim */
	remote_addr caller_addr;   /* the last frame pushed, never a shim; or 0 */
	bool entered;		   /* the next frame is called from C */
	remote_addr expected[FAKE_STACK_MAX_FRAMES]; /* visible frames, outermost first */
	size_t nr_expected;
};

/* Make a thread whose first chunk has chunk_bytes (0: no chunk) and no frames. */
void fake_stack_init(struct fake_stack *stack, struct fake_python *py, uint64_t tid,
		     uint64_t chunk_bytes);

/* Call a function. Its frame is executing; the next frame is placed frame_words after it. */
remote_addr fake_stack_call(struct fake_stack *stack, remote_addr code_addr, uint32_t frame_words);

/* Make the next call come from a C function. */
void fake_stack_call_c(struct fake_stack *stack);

/* Resume a generator, whose frame is on the heap. */
remote_addr fake_stack_resume(struct fake_stack *stack, remote_addr code_addr);

/*
 * Link a frame as an extension does: the last frame called stays inside C, and the next call
 * comes from the linked frame.
 */
remote_addr fake_stack_link(struct fake_stack *stack, remote_addr executable, uint8_t owner);

/* Begin a chunk. The next call's frame is its first. */
void fake_stack_new_chunk(struct fake_stack *stack, uint64_t chunk_bytes);

/* Write the stack into the thread state. */
void fake_stack_finish(struct fake_stack *stack);

/*
 * Return from the last frame called, leaving its memory as the version does. The frame below it,
 * at caller_addr, executes again.
 */
void fake_stack_pop(struct fake_stack *stack, remote_addr frame_addr, remote_addr caller_addr);
