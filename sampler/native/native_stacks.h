/* SPDX-License-Identifier: MIT */
/*
 * The C stacks of a target's threads: unwound from registers, named, and handed on with the Python
 * frames in their places (merged_stack.h). Whose registers and memory they are, of a core file or
 * of a copy that the kernel made, is the caller's business.
 *
 * Stacks may lead through code of which nothing tells how it is unwound: what CPython 3.14's JIT
 * makes, numba's kernels, extensions without call frame information. Behind it there is a call of
 * the interpreter's loop again. Where that is Python's frames tell (loop_entries.h), and it is at
 * the same distance from the end of its C frame in all calls: unwinding goes on there, and a hole
 * says so.
 *
 * Of threads that wait inside of the kernel it tells two registers: where they stand and where
 * their stack is. Most functions need no more to be unwound, or have called one that has saved what
 * they need. Where the frame pointer is needed (CPython 3.15 is built with them) the code of the
 * function tells it (symbols/unwind/frame_pointers.h), and it has to prove right: the stack goes on to
 * where the thread began, and through all calls of the loop at the addresses and at the one
 * distance that Python tells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/maps.h"
#include "procmem/sched/task.h"
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

/* What stands for the frame through which the kernel called a signal handler, as in gdb. */
#define NATIVE_STACKS_SIGNAL "<signal handler called>"

/* What code is called that was made at run time, and that nothing tells the name of. */
#define NATIVE_STACKS_JIT "[jit]"

/*
 * Names are remembered of so many addresses, each where its hash says: the same ones are in most
 * stacks.
 */
#define NATIVE_STACKS_NAMES 2048

/* Whether frames of a function stand where frames may be missing (MERGED_STACK_HOLE). */
bool native_stacks_is_hole(const struct function *function);

/* What is known of a program's loop. All zero: nothing yet. */
struct native_loop {
	uint32_t distance_bytes; /* from what an entry names to the end of its C frame */
	remote_addr lookup_addr; /* of an instruction of a loop that has called; 0: not known */
};

/* What native_stacks_init() is given. */
struct native_stacks_options {
	struct remote_memory *memory; /* has the modules; borrowed, as are: */
	const struct maps *maps;
	struct image_source *images;
	struct sampler *sampler; /* has the functions */
	struct jit_frames *jit;	 /* names code that was made at run time; NULL: nothing does */
	const struct kernel_frames *kernel; /* what a stack called of the kernel; NULL: nothing */
	size_t max_frames;		    /* longer stacks have a hole */
	bool keeps_trampolines;		    /* as in merged_stack.h */
};

/* Private but for what native_stacks_unwind() and native_stacks_unwind_waiting() say. */
struct native_stacks {
	struct native_stacks_options options;
	struct module_files *files;
	struct module_map map;
	struct unwind_modules *modules;
	struct native_names *names;
	struct executor_list executors;
	struct stack_merger merger;
	struct unwind_frame *frames;  /* innermost first; owned */
	struct registers registers;   /* of the outermost one, as far as they are known */
	struct native_frame *natives; /* likewise, for the merge; named when that is asked for */
	struct {
		remote_addr addr;
		const struct function *function;
	} met[NATIVE_STACKS_NAMES]; /* functions of modules, by addresses in them */
	size_t nr_frames;
	bool is_whole; /* the outermost of frames is where the thread began */
	bool waits;    /* the thread, inside of the kernel: see native_stacks_unwind_waiting() */
	struct native_loop loop;
	struct stack_window window; /* of threads that wait */
	struct frame_pointers pointers;
};

/*
 * Prepare for a target; all that options names is borrowed until native_stacks_done(), which
 * accepts stacks that are zero. 0 or -ENOMEM.
 */
int native_stacks_init(struct native_stacks *stacks, const struct native_stacks_options *options);
void native_stacks_done(struct native_stacks *stacks);

/*
 * Have other maps from now on, borrowed as those were that were read before; what is known of files
 * is kept (module_files.h). 0; -ENOMEM: native_stacks_done() is all that it is good for then.
 */
int native_stacks_set_maps(struct native_stacks *stacks, const struct maps *maps);

/*
 * Unwind the stack whose innermost frame has these registers, out of window, up to max_frames
 * (at least one, at most those of the options). Then, until the next call, frames are those of
 * the stack, is_whole says whether it has no hole, and registers are those of the outermost frame.
 */
void native_stacks_unwind(struct native_stacks *stacks, const struct registers *innermost,
			  struct stack_window *window, size_t max_frames);

/*
 * Unwind the stack of a thread that stands at place inside of the kernel, as native_stacks_unwind()
 * does, out of stacks->window. entries say where the loops of its Python frames are, and were read
 * while it stood there. An executor below has called out, for which it has written its instruction
 * back: the line is right, and the sample not flagged SAMPLE_IN_JIT, unless it is the executor
 * itself that waits, for a page.
 */
void native_stacks_unwind_waiting(struct native_stacks *stacks, const struct task_place *place,
				  const struct loop_entry *entries, uint32_t nr_entries);

/*
 * Learn from the stack that was unwound last, and lead it on from loop to loop as far as it can be,
 * if it has come to a hole. entries are those of its Python frames, of the same moment; window is
 * its memory.
 */
void native_stacks_cross(struct native_stacks *stacks, const struct loop_entry *entries,
			 uint32_t nr_entries, struct stack_window *window);

/*
 * Hand a sample, which has details, on to next with the frames that were unwound last, and those that
 * the kernel has of it (kernel_frames_take(), kernel_frames_wait()). 0,
 * -ENOMEM, or what next returned.
 */
int native_stacks_hand_on(struct native_stacks *stacks, const struct sample *sample,
			  struct sample_sink *next);
