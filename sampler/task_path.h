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

/* Whether an error concerns one task, and neither the target nor us. */
bool task_error_is_its_own(int err);

/*
 * Add a task that its thread executes: its name only. Or one that is suspended: the frames of its
 * coroutines, then its name. Return 0, -ENOMEM, -ESRCH, -EPERM, or an error of the task's own.
 */
int task_path_add_running(struct task_path *path, struct task_reader *reader,
			  const struct task_words *words);
int task_path_add_suspended(struct task_path *path, struct task_reader *reader,
			    const struct code_clock *clock, const struct task_words *words);

/* Add all that await a task, which was added last. What cannot be read ends the path. */
int task_path_add_awaiters(struct task_path *path, struct task_reader *reader,
			   const struct code_clock *clock, const struct task_words *words);
