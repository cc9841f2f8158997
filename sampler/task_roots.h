/* SPDX-License-Identifier: MIT */
/*
 * Roots samples at asyncio's tasks. Where a thread executes a task, its sample begins with the
 * tasks that await it, outermost first: each has a frame with its name (FUNCTION_TASK), followed
 * by the coroutines in which it waits. Then come the name of the task itself and what the thread
 * executes, from the task's coroutine on; the frames of the event loop are left out. If several
 * tasks await one, it is outermost, below a frame that says how many. Other samples are unchanged.
 *
 * Everything is read in the look that finds the thread's stack, so it is of the same instant.
 *
 * With TASKS_ALL, what the suspended tasks wait for gives samples, too: task_survey.h.
 */
#pragma once

#include "sampler/sample.h"
#include "sampler/snapshot.h"

struct sampler;
struct task_roots;

/*
 * Prepare to root the samples of a sampler, before its first tick. It is borrowed, and uses the
 * result until task_roots_destroy(), which accepts NULL. Returns 0 or -ENOMEM.
 */
int task_roots_create(struct sampler *sampler, struct task_roots **ret_roots);
void task_roots_destroy(struct task_roots *roots);

/* Before a look: find out where asyncio's tasks are, now and then. Returns 0, -ENOMEM, -ESRCH. */
int task_roots_prepare(struct task_roots *roots, uint64_t now_ns);

/*
 * In a look, after the stack of a thread was walked: read the task that it executes, and those
 * that await it. Returns 0; -ENOMEM, -ESRCH, -EPERM.
 */
int task_roots_look(struct task_roots *roots, const struct snapshot_thread *thread);

/*
 * Returns the sink that roots samples of a thread as the last look has found its tasks, and passes
 * them to next; borrowed until the next call. nr_unchanged may only be above 0 if the thread's
 * sample before went through the sink, too.
 */
struct sample_sink *task_roots_sink(struct task_roots *roots, const struct snapshot_thread *thread,
				    struct sample_sink *next);

/*
 * After the looks of a tick: emit samples of suspended tasks, if that is due. Returns 0; -ENOMEM,
 * -ESRCH, -EPERM, or what the sink returned.
 */
int task_roots_tick(struct task_roots *roots, struct sample_sink *sink, uint64_t now_ns);

/* Mark the codes that must be kept by code_cache_drop_unused(). */
void task_roots_use_codes(const struct task_roots *roots);

/* After a pause: its length is not a part of what samples stand for. */
void task_roots_shift(struct task_roots *roots, uint64_t length_ns);
