/* SPDX-License-Identifier: MIT */
/*
 * A page border in the head of a frame, where popped frames are told by their executable.
 *
 * The kernel copies page by page, and the target runs on between two of them. Where a frame's
 * caller does not change and the frame itself does, all the time, what lies behind the border
 * is the stack, and what lies before it is not: so that is copied first, as a piece of its own,
 * and is the instant of the sample. Of the frame that lies across the border the executable is
 * before it and the instruction behind it: the code objects that were seen to run there are
 * kept, and the instruction tells which of them it is.
 *
 * Whether that frame was live at the instant its executable, copied later, does not tell. One
 * that has locals does, by its stack pointer (frame_cleared()). One without has ended if it
 * stands at a return instruction. If it was left by an exception nothing behind the border tells:
 * its executable is NULL then, and it stands where it stood in the copy before.
 *
 * Source: CPython 3.14 and 3.15, Include/internal/pycore_interpframe.h (_PyFrame_Initialize()),
 * Python/bytecodes.c (RETURN_VALUE), Python/ceval.c (clear_thread_frame()), Python/frame.c
 * (_PyFrame_ClearLocals(), _PyFrame_ClearExceptCode()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

struct chunk_copy;
struct frame_walk;
struct frame_words;
struct stack_copy;

/* So many functions that run at one place are told apart. */
enum { MAX_BORDER_CODES = 8 };

struct border_code {
	uint64_t executable;
	remote_addr start_addr, end_addr; /* its bytecode */
};

/* Of one thread. All zero there is none. */
struct page_border {
	remote_addr addr;	      /* the first byte of the page behind it; 0: none */
	remote_addr frame_addr;	      /* the frame that lies across it */
	remote_addr caller_addr;      /* the frame below that one, */
	uint64_t caller_executable;   /* and what it runs */
	uint32_t index;		      /* of the frame in the list */
	uint32_t nr_steady;	      /* for so many walks all below it was the same */
	uint32_t nr_same;	      /* for so many walks the frame itself was */
	remote_addr doubt_instr_addr; /* where it stood in the last copy if that did not tell; 0 */
	struct border_code codes[MAX_BORDER_CODES];
	uint32_t nr_codes; /* so many were found; the first make room */
};

/* Where the page ends that addr lies in; larger ones end there, too. */
static inline remote_addr page_end(remote_addr addr)
{
	return (addr | 4095) + 1;
}

/* Whether a border lies in the head of the frame at addr, its instruction behind it. */
static inline bool page_border_in_head(const struct py_offsets *offsets, remote_addr addr)
{
	return page_end(addr) - addr <= offsets->frame.instr_ptr;
}

/*
 * Where the next copy of a chunk of stack is to be taken in two pieces, as an offset in the
 * chunk inside of (chunk->from_bytes, window_bytes); 0: in one.
 */
size_t page_border_choose(const struct stack_copy *stack, const struct chunk_copy *chunk,
			  size_t window_bytes);

/* Whether the frame at that offset of a chunk lies across the border that its copy has. */
bool page_border_crosses(const struct frame_walk *walk, const struct chunk_copy *chunk,
			 size_t offset);

/*
 * Judge the frame across the border by what was copied first: words get the executable that
 * it had then. 0; -ENOENT: there was no live frame, or it cannot be told which (walk->trimmed);
 * -ENOMEM, -ESRCH, -EPERM.
 */
int page_border_judge(struct frame_walk *walk, const struct chunk_copy *chunk, size_t offset,
		      struct frame_words *words);

/* Behind a walk: learn from its list where a border lies, and what runs there. */
void page_border_learn(struct frame_walk *walk);
