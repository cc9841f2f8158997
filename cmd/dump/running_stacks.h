/* SPDX-License-Identifier: MIT */
/*
 * The stacks, with C frames, of those threads of a process that run at the moment: a tenth of a
 * second of sampling, in which the kernel copies each of them whenever it has used a
 * millisecond of CPU time (sampler/sampler_natives.h), and of each the last one that has no hole,
 * if any has none.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "cmd/sampling/engine.h"
#include "cmd/target.h"
#include "procmem/message.h"
#include "sampler/sampler.h"

/* A stack as it was handed on. */
struct running_stack {
	pid_t tid;
	int64_t interpreter_id; /* whose code it runs, once there are frames */
	uint32_t nr_frames;
	struct frame *frames;	      /* owned; NULL: none has come so far */
	struct frame_detail *details; /* likewise, one for each of frames */
	bool is_holed;
};

struct running_stacks {
	struct sample_sink sink;
	struct running_stack *stacks; /* one and more for each thread that ran at first; owned */
	uint32_t nr_stacks, max_stacks;

	/* Private. */
	struct sampler *sampler; /* has the functions */
	struct engine engine;
};

/*
 * Take the stacks of the threads that run, with frames of the kernel if wanted; at once if none
 * does. 0, also if it cannot be done: ret_why, or ret_why_no_kernel, then says in a sentence why;
 * -ENOMEM, -ESRCH, -EPERM. target is borrowed until running_stacks_done(), which is to be called
 * either way and accepts one that is zero.
 */
int running_stacks_take(struct running_stacks *running, struct target *target, bool tells_kernel,
			struct message *ret_why, struct message *ret_why_no_kernel);
void running_stacks_done(struct running_stacks *running);

/*
 * The stack of a thread in its interpreter, borrowed; its C frames are also those of others that it has
 * called, or was called from. NULL: there is none.
 */
const struct running_stack *running_stacks_find(const struct running_stacks *running,
						const struct sample_thread *thread);
