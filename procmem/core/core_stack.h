/* SPDX-License-Identifier: MIT */
/*
 * The C stack of a thread of a core file: where it is, whether it was saved, and whether it
 * was full. Of a thread whose stack is full the stack pointer may lie below it, where nothing
 * is: functions move it before they write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/core/core.h"

/*
 * The largest frame that is taken for one more call. It is also more than the guard pages
 * have: 4 KiB of threads, 64 KiB on aarch64.
 */
#define CORE_STACK_MAX_FRAME_BYTES ((uint64_t)128 << 10)

enum core_stack_state {
	CORE_STACK_SAVED,
	/*
	 * The core lacks it, or has zeros: gdb before 18 writes those for stacks whose guard
	 * pages were made by madvise(), as glibc 2.42 does.
	 */
	CORE_STACK_MISSING,
	CORE_STACK_NOWHERE, /* the stack pointer leads to no memory that may be written */
};

enum core_stack_state core_stack_look(struct core *core, const struct core_thread *thread);

/*
 * Whether a thread died of that with its stack pointer there because its stack was full: it
 * could not access what is near, and below its stack or in the stack's guard page.
 */
bool core_stack_was_full(const struct core *core, const struct core_death *death,
			 remote_addr sp_addr);
