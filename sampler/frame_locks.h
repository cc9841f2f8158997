/* SPDX-License-Identifier: MIT */
/* Finds the locks that the frames of one thread refer to (struct sample_lock). */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/sample.h"

/* Limit on the locks of a thread; further ones are left out. */
enum { FRAME_LOCKS_MAX = 64 };

/*
 * Read the locks of a walked list of frames. Locks of frames that cannot be read, or that are far
 * out in a deep stack, are left out. Returns 0, -ENOMEM, -ESRCH, -EPERM.
 */
int frame_locks_read(struct remote_memory *memory, const struct py_build *build,
		     const struct frame_list *list, struct sample_lock locks[FRAME_LOCKS_MAX],
		     uint32_t *ret_nr_locks);
