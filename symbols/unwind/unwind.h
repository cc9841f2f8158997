/* SPDX-License-Identifier: MIT */
/*
 * One native stack, unwound: from the registers of its thread outwards, frame by frame, by
 * call frame information alone. A thread that runs on meanwhile is the caller's business.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"
#include "symbols/unwind/unwind_modules.h"

/*
 * A stack has a hole behind more signal frames than this: Linux has 64 signals, and each is
 * blocked while its handler runs. They alone may lead back to where the stack was before.
 */
#define UNWIND_MAX_SIGNAL_FRAMES 64

/* One frame; its part of the stack is [sp, cfa). */
struct unwind_frame {
	remote_addr pc;		 /* of the next instruction: a return address, mostly */
	remote_addr lookup_addr; /* of an instruction that is the frame's: for its name */
	remote_addr sp;
	remote_addr cfa; /* the caller's sp; 0 if it was not found: of the last frame only */
	/* Of what a signal handler returns to; its sp is where the kernel left what it tells. */
	bool is_signal_frame;
	/*
	 * None of its own: so far frames could not be unwound, and how many there are is not known.
	 */
	bool is_gap;
	bool is_anchor; /* known by what lies in it alone, so that it has no pc */
};

/*
 * Go from a frame to its caller: registers become the caller's, whose pc is not known if there is
 * none. 0 and *ret_cfa; -ENOENT (nothing tells how: there is no rule, or a register that it needs
 * is not known), -EBADMSG (the rule is none, or leads nowhere), -E2BIG (an expression has no end),
 * or an error of the window; registers are then as they were.
 */
int unwind_step(struct unwind_modules *modules, struct stack_window *window,
		struct registers *registers, remote_addr *ret_cfa);

/*
 * Go from a frame of which only the end is known, at cfa, to its caller: registers, of which the
 * stack pointer counts, become the caller's, by what the rule for lookup_addr says of where its
 * function has saved them: an instruction behind all of that. 0, or as unwind_step().
 */
int unwind_leave(struct unwind_modules *modules, struct stack_window *window,
		 remote_addr lookup_addr, remote_addr cfa, struct registers *registers);

/* Room for the frames of a stack, innermost first. */
struct unwound {
	struct unwind_frame *frames; /* nr_frames of max_frames */
	struct registers registers;  /* those of the outermost one, as far as they are known */
	size_t nr_frames, max_frames;
};

/*
 * Unwind a stack whose innermost frame has these registers, and append its frames: one at least,
 * for which there has to be room, and as many as there is. Its thread called its first function at
 * the last one if the result is 0; else the stack has a hole there: an error of unwind_step(), or
 * -E2BIG (it has more frames, or more than UNWIND_MAX_SIGNAL_FRAMES of signals).
 */
int unwind_stack(struct unwind_modules *modules, struct stack_window *window,
		 const struct registers *innermost, struct unwound *unwound);
