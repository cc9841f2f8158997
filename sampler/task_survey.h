/* SPDX-License-Identifier: MIT */
/*
 * What all suspended asyncio tasks of a thread wait for, at one moment. Each task that awaits no
 * other task has a stack: the tasks that lead to it (task_path.h), outermost first, down to the
 * place where it waits. It gives a sample, which stands for the time since the survey before.
 *
 * The samples belong to a thread of their own, "tasks of NAME".
 */
#pragma once

#include "sampler/cpython/base/cached_memory.h"
#include "sampler/task_path.h"

/*
 * Limits on the tasks of a survey; with more there is none. One takes 2 to 5 µs, in which a thread
 * that runs is held up.
 */
enum { SURVEY_MAX_TASKS = 1 << 17, SURVEY_MAX_TASKS_IN_LOOK = 1 << 10 };

/* A stack of the survey. */
struct surveyed_stack {
	uint32_t first, nr_frames; /* in survey.frames */
};

struct task_survey {
	struct cached_memory memory; /* what the last survey read is read ahead at once */
	struct task_reader reader;
	struct addr_list tasks;
	struct addr_list awaiters; /* of all of them, sorted */
	struct frame *frames;	   /* owned; of all stacks */
	uint32_t nr_frames, max_frames;
	struct surveyed_stack *stacks; /* owned */
	uint32_t nr_stacks, max_stacks;
	struct frame *last; /* owned; the frames of the last sample */
	uint32_t nr_last, max_last;
	struct sample_thread info;
};

/* Where the tasks of a thread are. */
struct task_place {
	const struct task_reader *reader; /* of its interpreter; its memory is not used */
	remote_addr thread_addr;	  /* of its state */
	remote_addr running_addr;	  /* the task that it executes, or 0 */
	const struct code_clock *clock;
	uint32_t max_tasks;
};

/*
 * Create a survey of the tasks of a thread. task_survey_destroy() accepts NULL. Returns 0 or
 * -ENOMEM.
 */
int task_survey_create(struct sampler *sampler, const struct sample_thread *thread,
		       struct task_survey **ret_survey);
void task_survey_destroy(struct sampler *sampler, struct task_survey *survey);

/*
 * Read the tasks anew. The stacks are valid if the thread is proven to have stood still meanwhile.
 * Returns 0; -E2BIG (too many tasks), -ENOMEM, -ESRCH, -EPERM.
 */
int task_survey_take(struct task_survey *survey, struct task_path *path,
		     const struct task_place *place);

/* Emit a sample for each stack, which has the time, weight and flags of sample. */
int task_survey_emit(struct task_survey *survey, struct sample sample, struct sample_sink *sink);
