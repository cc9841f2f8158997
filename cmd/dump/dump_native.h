/* SPDX-License-Identifier: MIT */
/*
 * The C frames of the threads of a running process: a sink that puts them between the Python
 * frames of each sample that has details, where they belong. Threads that wait are unwound
 * (sampler/native/native_stacks.h), those that run were copied before (cmd/dump/running_stacks.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/dump/running_stacks.h"
#include "cmd/target.h"
#include "procmem/message.h"
#include "procmem/sched/task.h"
#include "sampler/native/kernel_frames.h"
#include "sampler/native/native_stacks.h"

/* Stacks of more C frames than this have a hole: 8 MiB of the least that a call takes. */
#define DUMP_NATIVE_MAX_FRAMES (1u << 19)

struct dump_native {
	struct sample_sink sink;
	struct sample_sink *next;     /* borrowed */
	size_t nr_threads;	      /* that a sample came of */
	size_t nr_unknown;	      /* so many of them have no C frames */
	struct message why;	      /* of threads that run; "" if that is not the reason */
	struct message why_no_kernel; /* "": all of it is told, or was not asked for */

	/* Private. */
	const struct process *process;
	struct jit_frames *jit;
	struct native_stacks stacks;
	struct kernel_frames kernel;
	struct running_stacks running;
	struct task_place place; /* of the thread that is being looked at */
	bool waits;		 /* it has one */
	unsigned int nr_looks;	 /* at that thread */
};

/*
 * Hand samples of sampler_dump() on to next with their C frames, and those of the kernel if wanted.
 * Threads that run are copied now, for a tenth of a second, if there are any. All is borrowed until
 * dump_native_done(), which is to be called either way and accepts one that is zero. 0; -ENOMEM,
 * -ESRCH, -EPERM.
 */
int dump_native_init(struct dump_native *native, struct target *target, struct sampler *sampler,
		     bool tells_kernel, struct sample_sink *next);
void dump_native_done(struct dump_native *native);
