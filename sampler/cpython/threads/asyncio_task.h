/* SPDX-License-Identifier: MIT */
/*
 * Reads asyncio's tasks, what awaits them, and the frames of their coroutines, from 3.8 on. Tasks
 * are those of the C class asyncio.Task in _asyncio, or of a class that inherits from it.
 *
 * From 3.14 on a thread state heads the list of tasks that its event loop runs; an interpreter
 * state heads the list of tasks whose threads have ended. Before, asyncio_objects.h finds them.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c (TaskObj, register_task(),
 * future_awaited_by_add()), Include/internal/pycore_llist.h, Objects/setobject.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/base/addr_list.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/threads/asyncio_objects.h"
#include "sampler/cpython/threads/asyncio_offsets.h"

/* Longer lists are cut: a task with its coroutine takes 1 kB of the program's memory. */
#define TASKS_MAX (1u << 20)

/*
 * Limit on the awaiters of one task, and on the futures between it and them; further ones are left
 * out. In a gather() or TaskGroup each task has one.
 */
#define AWAITERS_MAX (1u << 16)

/* The context for reading tasks. One of asyncio and objects is NULL. All are borrowed. */
struct task_reader {
	struct remote_memory *memory;
	const struct py_build *build;
	const struct asyncio_offsets *asyncio; /* from 3.14 on */
	const struct asyncio_objects *objects; /* of the task's interpreter, before 3.14 */
	struct type_cache types;
};

/* The words of a task, or of a future, which only has those that say what awaits it. */
struct task_words {
	remote_addr addr;
	bool is_task;
	remote_addr name_addr;
	remote_addr coro_addr; /* 0 when it has finished */
	remote_addr loop_addr; /* before 3.14, else 0 */
	/* From 3.14 on: what awaits it. Before: the first callback, and the list of the others. */
	remote_addr awaited_by_addr;
	bool awaited_by_is_set;
	remote_addr callback0_addr, callbacks_addr;
};

/*
 * Append the tasks of the list with that head (3.14 and newer), until list has max_tasks. Returns
 * 0; -EAGAIN (two neighbours do not link to each other: the list changed meanwhile); -EFAULT;
 * -E2BIG (there are more, or a cycle); -ENOMEM, -ESRCH, -EPERM. After an error, the tasks before
 * the fault have been appended.
 */
int task_list_read(const struct task_reader *reader, remote_addr head_addr, uint32_t max_tasks,
		   struct addr_list *list);

/* Read the words of a task. Returns 0; -EBADMSG (it is no task); -EFAULT, -ESRCH, -EPERM. */
int task_read(const struct task_reader *reader, remote_addr task_addr, struct task_words *ret_task);

/*
 * Read which task the thread whose state is at thread_addr executes, if any; else 0. Errors of
 * task_read().
 */
int task_read_running(const struct task_reader *reader, remote_addr thread_addr,
		      remote_addr *ret_task_addr);

/*
 * Read a task's name, allocated (free() it): UTF-8 as from string_read(), "Task-N" for an unnamed
 * task. Returns 0, -EBADMSG, -EFAULT, -ENOMEM, -ESRCH or -EPERM.
 */
int task_read_name(struct task_reader *reader, const struct task_words *task, char **ret_name);

/*
 * Read the tasks that await this one, directly or through futures that are no tasks, into awaiters,
 * which is cleared first. Those that cannot be read are left out. Returns 0, -ENOMEM, -ESRCH or
 * -EPERM.
 */
int task_read_awaiters(const struct task_reader *reader, const struct task_words *task,
		       struct addr_list *awaiters);

/*
 * The frames of a suspended coroutine: its own, that of what it awaits, and so on.
 *
 * A coroutine, generator or asynchronous generator contains its frame (before 3.11: it has a frame
 * object), and has what it awaits on that frame's stack. Between two of them there may be objects
 * that only forward: the result of `__await__()` of a coroutine, or of `asend()` or `athrow()` of
 * an asynchronous generator. Any other object, such as the iterator of a future, ends the chain.
 *
 * Source: CPython 3.8 to 3.15 Objects/genobject.c, _PyGen_yf().
 */

/*
 * Longer chains are cut: -E2BIG. Resuming a chain takes a C call per await, so CPython's recursion
 * limit, 1000 unless a program raises it, applies to chains as well.
 */
enum { AWAIT_CHAIN_MAX = 1 << 14 };

/*
 * Walk the chain from the coroutine at coro_addr into list, outermost frame first;
 * list->nr_unchanged shows whether it has changed since the last walk. Objects are read with
 * reader, code objects with the memory of codes, whose build must have traits.generator_states.
 *
 * Returns 0; -EAGAIN, -EBADMSG (the objects are inconsistent); -EFAULT; -E2BIG (too long, or a
 * cycle); -ENOMEM, -ESRCH, -EPERM. After an error list holds what was walked.
 */
int await_chain_walk(struct code_cache *codes, struct task_reader *reader,
		     const struct code_clock *clock, remote_addr coro_addr,
		     struct frame_list *list);

/* Read the address of a coroutine's frame; 0 if it has none. Returns 0, -EFAULT, -ESRCH, -EPERM. */
int coroutine_read_frame(const struct task_reader *reader, remote_addr coro_addr,
			 remote_addr *ret_frame_addr);
