/* SPDX-License-Identifier: MIT */
/*
 * The thread state that a copy of a thread's stack is of. Most threads have one. But a thread has
 * one in each interpreter that it has made (until 3.12) or has called, and all that run Python code
 * have their loops in its one C stack: the copy is that of the innermost loop's.
 */
#pragma once

#include <sys/types.h>

#include "sampler/sampler.h"
#include "sampler/snapshot.h"

/*
 * Look at the thread states of thread tid, an id in our PID namespace, whose stack pointer was
 * sp_addr, and find the one that ran: *ret_thread, with its stack of now, *ret_late, which is empty
 * if that cannot be told. Both are the sampler's, until the next look. 0; -ENOENT (Python does not
 * know the thread, or not any more), or errors of sampler_thread_look() but for -EBADMSG.
 */
int dumped_thread_look(struct sampler *sampler, pid_t tid, remote_addr sp_addr,
		       struct snapshot_thread **ret_thread, const struct frame_list **ret_late);
