/* SPDX-License-Identifier: MIT */
/*
 * One stack of a thread's Python and C frames. Each call of the interpreter's loop runs one or
 * more frames of Python, and is one C frame: their place in the stack. Which C frame that is
 * says, since 3.10, a structure that the loop has in its own C frame (frame_detail.entry_addr);
 * before, the loops are known by the name of the function, and counted. Nothing else is
 * guessed: what does not add up is not put together, and has a hole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* What the interpreter's loop is called, to be told from other C functions before 3.10. */
#define MERGED_STACK_LOOP "_PyEval_EvalFrameDefault"

/* One C frame of the thread; its part of the stack is [sp_addr, cfa_addr). */
struct native_frame {
	uint64_t sp_addr;
	uint64_t cfa_addr;	  /* 0: not known, of the outermost one only */
	uint64_t trampoline_addr; /* where the trampoline begins (trampoline.h); 0: it is none */
	bool is_executor;	  /* code of CPython's JIT (executor_list.h) */
	const struct function *function; /* NULL: a trampoline of which nothing tells the name */
};

enum merged_kind {
	MERGED_PYTHON,
	MERGED_NATIVE,
	MERGED_TRAMPOLINE, /* a native one, of the Python frame that comes next: see below */
	MERGED_HOLE,	   /* frames may be missing here */
};

struct merged_frame {
	enum merged_kind kind;
	uint32_t index; /* of the Python frames (outermost first), or of the native ones */
};

/*
 * Merge the frames of a sample, which has details, with native ones (innermost first).
 * is_whole: the outermost native one is where the thread began. *ret_merged has the merged
 * frames, outermost first: each Python frame once; each native one once, but for the C frames
 * of loops that are known by the Python frames in their place. Allocated; free() it. 0 or
 * -ENOMEM.
 *
 * A trampoline is that of the Python frame behind it if it has called the loop that runs that
 * frame, and is of that function, unless nothing tells its name.
 */
int merged_stack_make(const struct sample *sample, const struct native_frame *natives,
		      uint32_t nr_natives, bool is_whole, struct merged_frame **ret_merged,
		      uint32_t *ret_nr_merged);

/*
 * Whether the innermost Python frame of a merged stack runs in an executor of CPython's JIT, or in
 * C functions that one has called. natives are those that merged has indexes of.
 */
bool merged_stack_runs_executor(const struct merged_frame *merged, uint32_t nr_merged,
				const struct native_frame *natives);
