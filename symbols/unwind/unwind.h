/* SPDX-License-Identifier: MIT */
/*
 * Unwinds one native stack, frame by frame, from the registers of its thread outwards, by call
 * frame information and, for functions that have none, by the calls that entered them
 * (call_site.h). The caller must ensure that the thread does not run meanwhile, or detect it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"
#include "symbols/unwind/unwind_modules.h"

/*
 * Limit on the signal frames of a stack: Linux has 64 signals and blocks each while its handler
 * runs. Unwinding stops with -E2BIG beyond it. Only signal frames may lead back to a part of the
 * stack already unwound, so this also ends every loop.
 */
#define UNWIND_MAX_SIGNAL_FRAMES 64

/* One frame; its part of the stack is [sp, cfa). */
struct unwind_frame {
	remote_addr pc;		 /* of the next instruction; usually a return address */
	remote_addr lookup_addr; /* of an instruction of the frame, for its name */
	remote_addr sp;
	remote_addr cfa; /* the caller's sp; 0 if unknown, in the last frame only */
	/* A signal handler returns to it. Its sp is where the kernel saved the context. */
	bool is_signal_frame;
	/*
	 * Not a frame: a range of the stack that could not be unwound, with an unknown number of
	 * frames.
	 */
	bool is_gap;
	bool is_anchor; /* recognised by the contents of its memory alone; it has no pc */
};

/*
 * Step from a frame to its caller: registers become the caller's. If there is no caller, the pc
 * becomes unknown.
 *
 * Returns 0 with *ret_cfa set; -ENOENT if there is no rule, or if it needs a register whose value
 * is unknown; -EBADMSG if the rule is invalid or leads to an impossible place; -E2BIG if an
 * expression exceeds its limits; or an error of the window. On error registers are unchanged.
 */
int unwind_step(struct unwind_modules *modules, struct stack_window *window,
		struct registers *registers, remote_addr *ret_cfa);

/*
 * Step to the caller of a frame of which only the end, cfa, is known. registers become the
 * caller's; on entry only the stack pointer matters. They are recovered by the rule for
 * lookup_addr, which must be an instruction after the function has saved its registers.
 *
 * Returns 0, or an error as unwind_step().
 */
int unwind_leave(struct unwind_modules *modules, struct stack_window *window,
		 remote_addr lookup_addr, remote_addr cfa, struct registers *registers);

/* The frames of a stack, innermost first. */
struct unwound {
	struct unwind_frame *frames; /* capacity max_frames */
	struct registers registers;  /* of the outermost frame, as far as known */
	size_t nr_frames, max_frames;
};

/*
 * Unwind a stack from the registers of its innermost frame, and append its frames to unwound,
 * which must have room for at least one. Unwinding stops when the room is used up.
 *
 * Returns 0 if the last frame is the first function of the thread. Otherwise the stack is
 * incomplete beyond the last frame: an error of unwind_step(), or -E2BIG if it has more frames
 * than there is room for, or more than UNWIND_MAX_SIGNAL_FRAMES signal frames.
 */
int unwind_stack(struct unwind_modules *modules, struct stack_window *window,
		 const struct registers *innermost, struct unwound *unwound);
