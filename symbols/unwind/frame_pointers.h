/* SPDX-License-Identifier: MIT */
/*
 * Computes the frame pointer of a function for which only the pc and the stack pointer are known,
 * as the kernel reports them for a waiting thread. It derives them from what the function's code
 * did to the stack pointer (stack_depth.h). The caller checks whether the stack unwound with the
 * result is plausible.
 */
#pragma once

#include "procmem/memory.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/unwind_modules.h"

/* Size of the result cache; threads wait in a few dozen functions. */
#define FRAME_POINTERS_CACHED 256

/* Private. */
struct frame_pointers {
	struct remote_memory *memory;
	struct unwind_modules *modules;
	struct {
		remote_addr pc;	      /* 0: the entry is empty */
		int err;	      /* 0, -ENOENT, -EBADMSG or -EFAULT */
		uint32_t depth_bytes; /* CFA - stack pointer */
	} cache[FRAME_POINTERS_CACHED];
};

/* Initialise for the modules of a memory. Both are borrowed. There is nothing to free. */
void frame_pointers_init(struct frame_pointers *pointers, struct remote_memory *memory,
			 struct unwind_modules *modules);

/*
 * Compute the frame pointer of a frame whose sp and pc are known and whose CFA rule needs it.
 *
 * Returns 0; -ENOENT if the frame has another rule or its code does not determine the value;
 * -EBADMSG if paths through the code disagree; -EFAULT, -ENOMEM, -ESRCH, -EPERM. Always -ENOENT
 * on machines other than x86-64.
 */
int frame_pointers_find(struct frame_pointers *pointers, const struct registers *frame,
			uint64_t *ret_value);
