/* SPDX-License-Identifier: MIT */
/*
 * What all suspended asyncio tasks of a thread wait for, at one moment. Each task that awaits no
 * other task has a stack: the tasks that lead to it (task_path.h), outermost first, down to the
 * place where it waits. It gives a sample, which stands for the time since the survey before.
 *
 * The samples belong to a thread of their own, "tasks of NAME".
 */
#pragma once

#include "procmem/bounded_memory.h"
#include "sampler/cpython/base/cached_memory.h"
#include "sampler/task_path.h"

/*
 * Limits on the tasks of a survey, and on the reads for it; beyond them there is none. In a look a
 * running thread is held up, 2 to 5 µs for a task: its limits are lower. A task with two coroutines
 * that a gather() awaits takes about 140 reads before 3.14, nearly all of them from cached pages.
 */
enum { SURVEY_MAX_TASKS = 1 << 17, SURVEY_MAX_TASKS_IN_LOOK = 1 << 10 };
enum { SURVEY_MAX_READS = 1 << 25, SURVEY_MAX_READS_IN_LOOK = 1 << 18 };

/* Limit on the frames that the surveys of all threads keep, 64 MiB; beyond it there is none. */
enum { SURVEYS_MAX_FRAMES = 1 << 22 };

/* A stack of the survey. */
struct surveyed_stack {
	uint32_t first, nr_frames; /* in survey.frames */
};

/* The last survey of a thread. */
struct task_survey {
	struct frame *frames; /* owned; of all stacks */
	uint32_t nr_frames, max_frames;
	struct surveyed_stack *stacks; /* owned */
	uint32_t nr_stacks, max_stacks;
	struct emitted_frames emitted;
	struct sample_thread info;
};

/* Reads surveys one after another. */
struct task_surveyor {
	struct cached_memory cached;	/* what the last survey read is read ahead at once */
	struct bounded_memory memory;	/* reads cached */
	struct task_reader reader;	/* reads memory */
	const struct task_survey *last; /* whose pages are cached; only compared */
	struct addr_list tasks;		/* sorted */
	bool *awaits;			/* owned; whether each of them awaits another one */
	uint32_t max_awaits;
	struct task_path *path; /* borrowed */
};

/* Where the tasks of a thread are, and limits. */
struct task_place {
	const struct task_reader *reader; /* of its interpreter; its memory is not used */
	remote_addr thread_addr;	  /* of its state */
	remote_addr running_addr;	  /* the task that it executes, or 0 */
	const struct code_clock *clock;
	bool is_in_look; /* the thread may be held up meanwhile */
	uint32_t max_frames;
};

/* Set up a surveyor of the tasks of a sampler. It and path are borrowed. */
void task_surveyor_init(struct task_surveyor *surveyor, struct sampler *sampler,
			struct task_path *path);
void task_surveyor_done(struct task_surveyor *surveyor);

/*
 * Create a survey of the tasks of a thread. task_survey_destroy() accepts NULL. Returns 0 or
 * -ENOMEM.
 */
int task_survey_create(struct sampler *sampler, const struct sample_thread *thread,
		       struct task_survey **ret_survey);
void task_survey_destroy(struct sampler *sampler, struct task_survey *survey);

/*
 * Read the tasks anew. The stacks are valid if the thread is proven to have stood still meanwhile.
 * Returns 0; -E2BIG (a limit above), -ENOMEM, -ESRCH, -EPERM.
 */
int task_survey_take(struct task_surveyor *surveyor, struct task_survey *survey,
		     const struct task_place *place);

/* Emit a sample for each stack, which has the time, weight and flags of sample. */
int task_survey_emit(struct task_survey *survey, struct sample sample, struct sample_sink *sink);
