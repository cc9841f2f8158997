/* SPDX-License-Identifier: MIT */
/* What a waiting thread waits in and for, as a dump says it. */
#pragma once

#include <sys/types.h>

#include "output/text/json.h"

/* All zero: unknown, or the thread does not wait. */
struct thread_waiting {
	char *text;	  /* a phrase such as "waits in read on pipe:[4711]"; unescaped */
	char *call;	  /* the system call, such as "read"; NULL: unknown */
	pid_t holder_pid; /* who holds what it waits for; 0: unknown */
	pid_t holder_tid;
};

/* Copy what a thread waits in. Returns 0 or -ENOMEM, with nothing to free. */
int thread_waiting_copy(struct thread_waiting *to, const struct thread_waiting *from);

/* Free and empty a copy. */
void thread_waiting_done(struct thread_waiting *waiting);

/*
 * Write the value of a key: null if it is unknown, else text, system_call (null if unknown),
 * holder: null, or pid and tid.
 */
void thread_waiting_write(struct json *json, const struct thread_waiting *waiting);
