/* SPDX-License-Identifier: MIT */
/*
 * What the threads of a process wait in while their stacks are read: a sink that asks the kernel
 * before and after each look, and passes the samples on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/sample.h"

/* A thread, and what it did while its stack was read. */
struct looked_thread {
	pid_t tid;
	uint32_t index; /* of its sample, among those that were passed on */
	uint64_t ident; /* the C library's; 0: unknown */
	char name[THREAD_NAME_MAX_BYTES];
	bool is_waiting; /* or stopped; wait is valid */
	bool has_call;	 /* it was in call before and after the look, all the time or again */
	struct thread_call call; /* valid if has_call */
	struct thread_wait wait;
	uint64_t nr_runs;	   /* how often it had run when it began to wait; 0: unknown */
	struct sample_lock *locks; /* owned */
	uint32_t nr_locks;
};

/* Empty when all zero. */
struct waits {
	struct sample_sink sink;
	struct looked_thread *threads; /* owned; those with a known id */
	uint32_t nr_threads, max_threads;

	/* Private. */
	struct sample_sink *next; /* borrowed */
	const struct process *process;
	uint32_t nr_samples;
	struct thread_call before;
	bool has_before; /* the thread that is being looked at was in a call */
};

/*
 * Begin to pass samples of sampler_dump() to next. Both are borrowed until waits_done(), which
 * accepts a zeroed struct.
 */
void waits_init(struct waits *waits, const struct process *process, struct sample_sink *next);
void waits_done(struct waits *waits);
