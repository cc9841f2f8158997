/* SPDX-License-Identifier: MIT */
/*
 * The fault behind a signal that the process sent to itself. A handler that raises its signal
 * again, as that of Python's faulthandler does when it has written its lines, leaves a core in
 * which the signal is somebody's; what the kernel told of the fault still lies on the C stack,
 * in the frame that the handler would have returned to.
 */
#pragma once

#include <stdbool.h>

#include "procmem/core/core.h"
#include "symbols/elf/image_source.h"

struct core_fault {
	struct core_death death; /* of the same signal; it has an address, and maybe a code */
	remote_addr sp_addr;	 /* the stack pointer where it happened */
};

/*
 * Look for it on the stack of the thread that died, whose modules' files are images'. Whether it
 * was found, and *ret_fault.
 */
bool core_fault_find(struct core *core, struct image_source *images, struct core_fault *ret_fault);
