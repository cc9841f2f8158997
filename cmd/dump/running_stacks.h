/* SPDX-License-Identifier: MIT */
/*
 * The stacks, with C frames, of the threads of a process that are running now. It samples for a
 * tenth of a second, while the kernel copies each of them after every millisecond of CPU time
 * (sampler/sampler_native.h), and keeps the last stack of each thread, preferring one without a
 * gap.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "cmd/sampling/engine.h"
#include "cmd/target.h"
#include "procmem/message.h"
#include "sampler/sampler.h"

/* A stack as the sampler emitted it. */
struct running_stack {
	pid_t tid;
	int64_t interpreter_id; /* the interpreter whose code it runs, once there are frames */
	uint32_t nr_frames;
	struct frame *frames;	      /* owned; NULL: none yet */
	struct frame_detail *details; /* owned; one for each of frames */
	bool has_gap;
};

struct running_stacks {
	struct sample_sink sink;
	struct running_stack *stacks; /* owned; one or more for each thread that ran at first */
	uint32_t nr_stacks, max_stacks;

	/* Private. */
	struct sampler *sampler; /* owns the functions */
	struct interrupts_pool pool;
	struct engine engine;
};

/*
 * Collect the stacks of the running threads, with kernel frames on request; ends at once if no
 * thread runs. Returns 0, also if it cannot be done: then *ret_why_no_native or
 * *ret_why_no_kernel says why; -ENOMEM, -ESRCH or -EPERM. target is borrowed until
 * running_stacks_done(), which must be called in any case and accepts a zeroed struct.
 */
int running_stacks_collect(struct running_stacks *running, struct target *target,
			   bool kernel_frames, struct message *ret_why_no_native,
			   struct message *ret_why_no_kernel);
void running_stacks_done(struct running_stacks *running);

/*
 * Returns the stack of a thread in its interpreter, borrowed; NULL if there is none. Its C frames
 * include those of other interpreters that it has called or was called from.
 */
const struct running_stack *running_stacks_find(const struct running_stacks *running,
						const struct sample_thread *thread);
