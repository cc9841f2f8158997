/* SPDX-License-Identifier: MIT */
/*
 * One stack of a thread's Python and C frames. Each call of the interpreter's loop runs one or
 * more frames of Python, and is one C frame: their place in the stack. Which C frame that is
 * says, since 3.10, a structure that the loop has in its own C frame (frame_detail.entry_addr);
 * before, the loops are known by the name of the function, and counted. Nothing else is
 * guessed: what does not add up is not put together, and has a hole.
 *
 * CPython calls each Python function through a trampoline of its own under -X perf and -X perf_jit,
 * which is called "py::QUALNAME:FILE" in what it writes of them, and does nothing but call the
 * loop. While that runs the function they are one activation.
 *
 * Of -X perf_jit the file lacks the last ones, as CPython writes 4096 bytes at a time: of a
 * process that runs half of all samples had one of those. Where they are not found in the buffer of
 * its C library (symbols/elf/file_tail.h) they are known by their bytes
 * (symbols/jit/perf_trampoline.h), and what they are called by the frames that they were seen with.
 * Source: Python/perf_trampoline.c, Python/perf_jit_trampoline.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/sample.h"
#include "sampler/sampler.h"

/* What the interpreter's loop is called, to be told from other C functions before 3.10. */
#define MERGED_STACK_LOOP "_PyEval_EvalFrameDefault"

/* What stands where frames may be missing: of the kind of a C function, without a path, of line 0. */
#define MERGED_STACK_HOLE "[unknown]"

/* What a trampoline is called that nothing has told of yet. */
#define MERGED_STACK_TRAMPOLINE "[trampoline]"

/* So many are remembered, each where its address says: programs have some hundred that are hot. */
enum { MERGED_STACK_TRAMPOLINES = 1024 };

/* One C frame of the thread; its part of the stack is [sp_addr, cfa_addr). */
struct native_frame {
	uint64_t sp_addr;
	uint64_t cfa_addr;		 /* 0: not known, of the outermost one only */
	uint64_t pc_addr;		 /* its next instruction */
	uint64_t trampoline_addr;	 /* where the trampoline begins; 0: it is none */
	bool is_executor;		 /* code of CPython's JIT (executor_list.h) */
	const struct function *function; /* NULL: a trampoline of which nothing tells the name */
};

/* What there is to merge the Python frames with. All borrowed. */
struct native_stack {
	const struct native_frame *frames; /* innermost first */
	uint32_t nr_frames;
	bool is_whole;			      /* the outermost one is where the thread began */
	const struct function *const *kernel; /* the kernel's functions, innermost first */
	uint32_t nr_kernel;
};

/* What merges stacks of one process. All else zero, nothing is known of trampolines yet. */
struct stack_merger {
	struct sampler *sampler; /* borrowed; has the functions */
	bool keeps_trampolines;	 /* those that carry a Python frame, too */
	struct {
		remote_addr addr;
		const struct function *python; /* that it calls */
	} trampolines[MERGED_STACK_TRAMPOLINES];
};

/* Frames, outermost first, and a detail of each. */
struct merged_stack {
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned */
	uint32_t nr_frames;
	bool runs_executor; /* the innermost Python frame, or a C function that it has called */
};

/* Whether code of that name may be a trampoline. */
bool trampoline_is_name(const char *name);

/*
 * Merge the frames of a sample, which has details, with native ones: each Python frame once; each
 * native one once, but for the C frames of loops that are known by the Python frames in their
 * place, and the kernel's innermost. A trampoline is that of the Python frame behind it if it has
 * called the loop that runs that frame, and is of that function, unless nothing tells its name:
 * then that is known from now on. merged_stack_done() frees what *ret_stack has. 0 or -ENOMEM.
 */
int merged_stack_make(struct stack_merger *merger, const struct sample *sample,
		      const struct native_stack *native, struct merged_stack *ret_stack);
void merged_stack_done(struct merged_stack *stack);
