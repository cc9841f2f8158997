/* SPDX-License-Identifier: MIT */
/*
 * Adds the C frames of the threads of a running process: a sink that puts them in their places
 * between the Python frames of each sample that has details. Waiting threads are unwound
 * (sampler/native/native_stacks.h), running ones were copied before (cmd/dump/running_stacks.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/dump/running_stacks.h"
#include "cmd/target.h"
#include "procmem/message.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/native/kernel_frames.h"
#include "sampler/native/native_stacks.h"

struct dump_native {
	struct sample_sink sink;
	struct sample_sink *next;     /* borrowed */
	size_t nr_threads;	      /* threads that had a sample */
	size_t nr_unknown;	      /* those of them without C frames */
	struct message why_no_native; /* why running threads have none; "": not the reason */
	struct message why_no_kernel; /* why kernel frames are missing; "": no failure */

	/* Private. */
	const struct process *process;
	struct jit_frames *jit;
	struct native_stacks stacks;
	struct kernel_frames kernel;
	struct running_stacks running;
	struct wait_place place; /* of the thread that is being read */
	bool waits;		 /* the thread waits at place */
	unsigned int nr_looks;	 /* looks at that thread so far */
};

/*
 * Emit samples of sampler_dump() to next with their C frames, and with kernel frames on request.
 * Running threads, if any, are copied now, for a tenth of a second. All arguments
 * are borrowed until dump_native_done(), which must be called in any case and accepts a zeroed
 * struct. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
int dump_native_init(struct dump_native *native, struct target *target, struct sampler *sampler,
		     bool kernel_frames, struct sample_sink *next);
void dump_native_done(struct dump_native *native);
