/* SPDX-License-Identifier: MIT */
/*
 * The frames that lead to an asyncio task: its name, then the coroutines in which its awaiter
 * waits, the awaiter's name, and so on, up to a task that none awaits, or several. So it is built
 * innermost first; samples have it the other way round.
 *
 * All unnamed tasks ("Task-1", "Task-2", …) are called TASK_UNNAMED: a server makes one for each
 * request.
 */
#pragma once

#include "sampler/cpython/threads/asyncio_task.h"
#include "sampler/sample.h"

struct sampler;

#define TASK_UNNAMED "Task"

/* Number of tasks, and of frames, in a path. Where a limit is met, the path is cut. */
enum { TASK_PATH_MAX_TASKS = 64, TASK_PATH_MAX_FRAMES = 1 << 12 };

/* All zero but sampler, which is borrowed: empty. */
struct task_path {
	struct sampler *sampler;
	struct frame *frames; /* owned; innermost first */
	uint32_t nr_frames, max_frames;
	struct frame_list chain;   /* of the task being read */
	struct addr_list awaiters; /* of that task */
};

void task_path_done(struct task_path *path);

/*
 * Add a task that its thread executes: its name only. Or one that is suspended: the frames of its
 * coroutines, then its name. Return 0; -E2BIG (a limit, or one of the reader's memory); -ENOMEM,
 * -ESRCH, -EPERM. What cannot be read is left out.
 */
int task_path_add_running(struct task_path *path, struct task_reader *reader,
			  const struct task_words *words);
int task_path_add_suspended(struct task_path *path, struct task_reader *reader,
			    const struct code_clock *clock, const struct task_words *words);

/*
 * Add all that await a task, which was added last. What cannot be read ends the path. Returns 0,
 * -ENOMEM, -ESRCH or -EPERM.
 */
int task_path_add_awaiters(struct task_path *path, struct task_reader *reader,
			   const struct code_clock *clock, const struct task_words *words);

/* The frames of the last sample of a thread, outermost first. All zero: none. */
struct emitted_frames {
	struct frame *frames; /* owned */
	uint32_t nr, max;
};

void emitted_frames_done(struct emitted_frames *emitted);

/*
 * Replace them by nr_outer frames of outer, followed by nr_inner of inner. *ret_nr_same is how many
 * of the outermost stay the same. Returns 0 or -ENOMEM.
 */
int emitted_frames_replace(struct emitted_frames *emitted, const struct frame *outer,
			   uint32_t nr_outer, const struct frame *inner, uint32_t nr_inner,
			   uint32_t *ret_nr_same);
