/* SPDX-License-Identifier: MIT */
/*
 * Finds the fault that caused a signal which the process sent to itself. A handler that raises its
 * signal again, as Python's faulthandler does after its report, leaves a core in which a process
 * sent the signal. What the kernel reported of the fault is still on the C stack, in the frame
 * that the handler would have returned to.
 */
#pragma once

#include <stdbool.h>

#include "procmem/core/core.h"
#include "symbols/elf/image_source.h"

struct core_fault {
	struct core_death death; /* of the same signal; has an address and maybe a code */
	remote_addr sp_addr;	 /* the stack pointer at the fault */
};

/*
 * Search the stack of the thread that died; images opens the files of its modules. Returns
 * whether the fault was found. *ret_fault is undefined if not.
 */
bool core_fault_find(struct core *core, struct image_source *images, struct core_fault *ret_fault);
