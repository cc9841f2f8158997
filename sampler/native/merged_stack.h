/* SPDX-License-Identifier: MIT */
/*
 * One stack of a thread's Python and C frames. Each call of the interpreter's loop is one C frame
 * and runs one or more Python frames, which take its place in the stack. Since 3.10 a structure
 * in the loop's C frame identifies that frame (frame_detail.entry_addr). Before, the loops are
 * recognised by the function's name, and counted. Nothing else is guessed: what does not match is
 * not merged, and has a gap.
 *
 * Under -X perf and -X perf_jit CPython calls each Python function through a trampoline of its
 * own, which is named "py::QUALNAME:FILE" in CPython's output and does nothing but call the loop.
 * While the loop runs the function, both are one activation.
 *
 * The file of -X perf_jit lacks the last trampolines, as CPython writes 4096 bytes at a time: in
 * a running process half of all samples had one of those. If they are not found in the buffer of
 * its C library (symbols/elf/file_tail.h) they are recognised by their bytes
 * (symbols/jit/perf_trampoline.h), and named by the frames that they were seen with.
 *
 * Source: Python/perf_trampoline.c, Python/perf_jit_trampoline.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/sample.h"
#include "sampler/sampler.h"

/* The name of the interpreter's loop, which identifies it among C functions before 3.10. */
#define MERGED_STACK_LOOP "_PyEval_EvalFrameDefault"

/* Stands for frames that may be missing: a C function without a path, with line 0. */
#define MERGED_STACK_GAP "[unknown]"

/* The name of a trampoline whose function is not known yet. */
#define MERGED_STACK_TRAMPOLINE "[trampoline]"

/* Number of remembered trampolines, hashed by address: programs have some hundred hot ones. */
enum { MERGED_STACK_TRAMPOLINES = 1024 };

/* One C frame of the thread; its part of the stack is [sp_addr, cfa_addr). */
struct native_frame {
	uint64_t sp_addr;
	uint64_t cfa_addr;		 /* 0: unknown, for the outermost one only */
	uint64_t pc_addr;		 /* its next instruction */
	uint64_t trampoline_addr;	 /* start of the trampoline; 0: it is none */
	bool is_executor;		 /* code of CPython's JIT (executor_list.h) */
	const struct function *function; /* NULL: a trampoline without a known name */
};

/* The C frames to merge the Python frames with. All borrowed. */
struct native_stack {
	const struct native_frame *frames; /* innermost first */
	uint32_t nr_frames;
	bool is_whole;			      /* the outermost frame is where the thread began */
	const struct function *const *kernel; /* the kernel's functions, innermost first */
	uint32_t nr_kernel;
};

/*
 * Merges stacks of one process. Zero except for the first two fields: no trampolines are known
 * yet.
 */
struct stack_merger {
	struct sampler *sampler; /* borrowed; owns the functions */
	bool keeps_trampolines;	 /* keep trampolines that have a Python frame as well */
	struct {
		remote_addr addr;
		const struct function *python; /* the function that it calls */
	} trampolines[MERGED_STACK_TRAMPOLINES];
};

/* Frames, outermost first, with a detail for each. */
struct merged_stack {
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned */
	uint32_t nr_frames;
	bool runs_executor; /* the innermost Python frame does, or a C function that it called */
};

/* Whether code of that name may be a trampoline. */
bool trampoline_is_name(const char *name);

/*
 * Merge the frames of a sample, which has details, with native ones. Each Python frame appears
 * once. Each native frame appears once, except for the C frames of loops that are identified,
 * which their Python frames replace. The kernel's functions are innermost. A trampoline is merged
 * into a Python frame if it called the loop that runs that frame and its name is that of the
 * frame's function; a trampoline without a name takes that function from now on.
 * merged_stack_done() frees the content of *ret_stack. Returns 0 or -ENOMEM.
 */
int merged_stack_make(struct stack_merger *merger, const struct sample *sample,
		      const struct native_stack *native, struct merged_stack *ret_stack);
void merged_stack_done(struct merged_stack *stack);
