/* SPDX-License-Identifier: MIT */
/*
 * The C stack of a thread of a core file: where it is, whether it was saved, and whether it was
 * full. If a stack is full, the stack pointer may be below it, where no memory is: functions move
 * it before they write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/core/core.h"

/*
 * The largest frame that is plausible for one more call. It is also larger than guard pages: 4 KiB
 * for threads, 64 KiB on aarch64.
 */
#define CORE_STACK_MAX_FRAME_BYTES ((uint64_t)128 << 10)

enum core_stack_state {
	CORE_STACK_SAVED,
	/*
	 * The core lacks it, or has only zeros there: gdb before 18 writes zeros for stacks whose
	 * guard pages were made with madvise(), as by glibc 2.42.
	 */
	CORE_STACK_MISSING,
	CORE_STACK_UNMAPPED, /* the stack pointer leads to no writable memory */
};

enum core_stack_state core_stack_find_state(struct core *core, const struct core_thread *thread);

/*
 * Whether a thread with this stack pointer died because its stack was full: it could not access an
 * address that is near the stack pointer and below the stack or in its guard pages.
 */
bool core_stack_overflowed(const struct core *core, const struct core_death *death,
			   remote_addr sp_addr);
