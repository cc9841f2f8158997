/* SPDX-License-Identifier: MIT */
/*
 * The C stacks of a target's threads: unwound from registers, named, and emitted with the Python
 * frames in their places (merged_stack.h). The caller supplies the registers and the memory, from
 * a core file or from a copy that the kernel made.
 *
 * Stacks may lead through code without unwind information: code of CPython 3.14's JIT, numba's
 * kernels, extensions without call frame information. Further out there is a call of the
 * interpreter's loop again. Python's frames have its address (loop_entries.h), at the same
 * distance from the end of its C frame in all calls. So unwinding continues there, after a gap.
 *
 * For threads that wait in the kernel only two registers are known: the instruction and the stack
 * pointer. Most functions need no more to be unwound, or have called one that saved what they
 * need. Where the frame pointer is needed (CPython 3.15 is built with frame pointers) the
 * function's code reveals it (symbols/unwind/frame_pointers.h). It must then prove right: the
 * stack continues to where the thread began, and through all calls of the loop at the addresses
 * that Python has, at the one distance.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/maps.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/native/executor_list.h"
#include "sampler/native/kernel_frames.h"
#include "sampler/native/merged_stack.h"
#include "sampler/sampler.h"
#include "symbols/elf/image_source.h"
#include "symbols/elf/native_names.h"
#include "symbols/jit/jit_frames.h"
#include "symbols/unwind/frame_pointers.h"
#include "symbols/unwind/unwind.h"

/* Name of the frame through which the kernel called a signal handler, as in gdb. */
#define NATIVE_STACKS_SIGNAL "<signal handler called>"

/* Name of run-time code without a known name. */
#define NATIVE_STACKS_JIT "[jit]"

/* Number of addresses whose names are remembered, hashed by address: most stacks share them. */
#define NATIVE_STACKS_NAMES 2048

/* Whether a function stands for frames that may be missing (MERGED_STACK_GAP). */
bool native_stacks_is_gap(const struct function *function);

/* What is known about a program's loop. All zero: nothing yet. */
struct native_loop {
	uint32_t distance_bytes; /* from an entry's address to the end of its C frame */
	remote_addr lookup_addr; /* of an instruction of a loop that made a call; 0: unknown */
};

/*
 * Limit on the C frames of one stack in dump and core: those of 8 MiB of the smallest calls. A
 * longer stack has a gap after them.
 */
#define NATIVE_STACKS_MAX_FRAMES (1u << 19)

/* Arguments of native_stacks_init(). */
struct native_stacks_options {
	struct remote_memory *memory; /* has the modules; borrowed, like all other pointers */
	const struct maps *maps;
	struct image_source *images;
	struct sampler *sampler;	    /* owns the functions */
	struct jit_frames *jit;		    /* names run-time code; NULL: it has no names */
	const struct kernel_frames *kernel; /* kernel functions that a stack called; NULL: none */
	size_t max_frames;		    /* longer stacks have a gap */
	bool keeps_trampolines;		    /* as in merged_stack.h */
};

/* Private, except for what native_stacks_unwind() and native_stacks_unwind_waiting() set. */
struct native_stacks {
	struct native_stacks_options options;
	struct module_files *files;
	struct module_map map;
	struct unwind_modules *modules;
	struct native_names *names;
	struct executor_list executors;
	struct stack_merger merger;
	struct unwind_frame *frames;	    /* innermost first; owned */
	struct registers registers;	    /* of the outermost frame, as far as they are known */
	struct native_frame *native_frames; /* the same frames, for the merge; named on demand */
	struct {
		remote_addr addr;
		const struct function *function;
	} functions[NATIVE_STACKS_NAMES]; /* functions of modules, by address */
	size_t nr_frames;
	bool is_whole; /* the outermost frame is where the thread began */
	bool waits;    /* the thread waits in the kernel: native_stacks_unwind_waiting() */
	struct native_loop loop;
	struct stack_window window; /* for waiting threads */
	struct frame_pointers pointers;
};

/*
 * Prepare for a target. Everything that options refers to is borrowed until native_stacks_done(),
 * which accepts a struct that is all zero. Returns 0 or -ENOMEM.
 */
int native_stacks_init(struct native_stacks *stacks, const struct native_stacks_options *options);
void native_stacks_done(struct native_stacks *stacks);

/*
 * Replace the maps; the new ones are borrowed like the old ones. What is known about files is
 * kept (module_files.h). Returns 0; -ENOMEM: then only native_stacks_done() may follow.
 */
int native_stacks_set_maps(struct native_stacks *stacks, const struct maps *maps);

/*
 * Unwind the stack in window whose innermost frame has these registers, up to max_frames frames
 * (at least one, at most those of the options). Until the next call frames has the result,
 * is_whole says that it has no gap, and registers are those of the outermost frame.
 */
void native_stacks_unwind(struct native_stacks *stacks, const struct registers *innermost,
			  struct stack_window *window, size_t max_frames);

/*
 * Unwind the stack of a thread that waits at place in the kernel, like native_stacks_unwind(),
 * from stacks->window. entries are the loops of its Python frames, read while it waited there. An
 * executor further out has made a call and written its instruction back for that: the line is
 * right, and the sample is not flagged SAMPLE_IN_JIT, unless the executor itself waits, for a
 * page.
 */
void native_stacks_unwind_waiting(struct native_stacks *stacks, const struct wait_place *place,
				  const struct loop_entry *entries, uint32_t nr_entries);

/*
 * Learn from the last unwound stack and, if it ends at a gap, continue it from loop to loop as
 * far as possible. entries are those of its Python frames at the same moment; window is its
 * memory.
 */
void native_stacks_cross_gaps(struct native_stacks *stacks, const struct loop_entry *entries,
			      uint32_t nr_entries, struct stack_window *window);

/*
 * Emit a sample, which has details, to next, with the frames that were unwound last and the
 * kernel's frames (kernel_frames_set_running(), kernel_frames_set_waiting()). Returns 0, -ENOMEM,
 * or what next returned.
 */
int native_stacks_emit(struct native_stacks *stacks, const struct sample *sample,
		       struct sample_sink *next);
