/* SPDX-License-Identifier: MIT */
/*
 * The frame pointers of functions of which no more is known than where their stack pointer is,
 * as the kernel tells of a thread that waits: by what the function's code has done to it
 * (stack_depth.h). Whether a stack that is unwound with it can be is the caller's business.
 */
#pragma once

#include "procmem/memory.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/unwind_modules.h"

/* Answers that are kept; threads wait in some dozen functions. */
#define FRAME_POINTERS_KEPT 256

/* Private. */
struct frame_pointers {
	struct remote_memory *memory;
	struct unwind_modules *modules;
	struct {
		remote_addr pc; /* 0: none is kept here */
		int err;
		uint32_t depth_bytes; /* the CFA less the stack pointer */
	} kept[FRAME_POINTERS_KEPT];
};

/* Initialise for the modules of a memory, which are borrowed; there is nothing to be freed. */
void frame_pointers_init(struct frame_pointers *pointers, struct remote_memory *memory,
			 struct unwind_modules *modules);

/*
 * *ret_value, what the frame pointer is in a frame that needs it for its CFA, and whose sp and pc
 * are known. 0; -ENOENT (it has another rule, or its code does not tell), -EBADMSG (the code says
 * this and that), -EFAULT, -ENOMEM, -ESRCH, -EPERM. On machines other than x86-64: -ENOENT.
 */
int frame_pointers_find(struct frame_pointers *pointers, const struct registers *frame,
			uint64_t *ret_value);
