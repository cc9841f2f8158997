/* SPDX-License-Identifier: MIT */
/* What a waiting thread waits in and for, as a dump says it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/text/json.h"

/*
 * Returns what a thread does, by a letter of proc_pid_stat(5): "runs", "waits uninterruptibly",
 * "is stopped"; static.
 */
const char *thread_state_text(char state);

/* All zero: unknown, or the thread does not wait. */
struct thread_waiting {
	char *text;	   /* a phrase such as "waits in read on pipe:[4711]"; unescaped */
	size_t time_bytes; /* the end of text: how long it still waits */
	char *call;	   /* the system call, such as "read"; NULL: unknown */
	pid_t holder_pid;  /* who holds what it waits for; 0: unknown */
	pid_t holder_tid;
	uint64_t nr_runs; /* how often it had run when it began to wait; 0: unknown */
};

/* Copy what a thread waits in. Returns 0 or -ENOMEM, with nothing to free. */
int thread_waiting_copy(struct thread_waiting *to, const struct thread_waiting *from);

/* Free and empty a copy. */
void thread_waiting_done(struct thread_waiting *waiting);

/* Whether two threads wait for the same, however much longer. */
bool thread_waiting_equals(const struct thread_waiting *a, const struct thread_waiting *b);

/*
 * Write the value of a key: null if it is unknown, else text, system_call (null if unknown),
 * holder: null, or pid and tid.
 */
void thread_waiting_write(struct json *json, const struct thread_waiting *waiting);
