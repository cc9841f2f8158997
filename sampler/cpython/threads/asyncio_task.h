/* SPDX-License-Identifier: MIT */
/*
 * asyncio's tasks, who awaits them, and the frames of their coroutines, from 3.14 on: those that are, or inherit from,
 * asyncio.Task as _asyncio has it in C. A thread state heads the list of those that its event
 * loop runs, an interpreter state that of threads that have ended.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c (TaskObj, register_task(),
 * future_awaited_by_add()), Include/internal/pycore_llist.h, Objects/setobject.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/object.h"

/* Longer lists are cut: a task takes 1 kB of the program's memory with its coroutine. */
#define TASKS_MAX (1u << 20)

/*
 * So many that await one task are told, and so many futures between it and them looked at;
 * those beyond are left out. In a gather() or TaskGroup each task has one.
 */
#define AWAITERS_MAX (1u << 16)

/* Addresses, which are borrowed from nobody. All zero there are none. */
struct addr_list {
	remote_addr *addrs; /* owned */
	uint32_t nr, max;
};

/* Free the list, which is empty then. Accepts NULL. */
void addr_list_done(struct addr_list *list);

/* 0 or -ENOMEM. */
int addr_list_append(struct addr_list *list, remote_addr addr);

/* What tasks are read with. */
struct task_reader {
	struct remote_memory *memory;	       /* borrowed */
	const struct py_offsets *offsets;      /* borrowed */
	const struct asyncio_offsets *asyncio; /* borrowed */
	struct type_cache types;
};

/* The words of a task, or of a future, which has the last two. */
struct task_words {
	bool is_task;
	remote_addr name_addr;
	remote_addr coro_addr; /* 0: none any more */
	remote_addr awaited_by_addr;
	bool awaited_by_is_set;
};

/*
 * Append the tasks of the list with that head. 0; -EAGAIN (two neighbours do not know each other:
 * it changed meanwhile), -EFAULT, -E2BIG (TASKS_MAX, or a circle), -ENOMEM, -ESRCH, -EPERM; those
 * up to the fault were appended.
 */
int task_list_read(const struct task_reader *reader, remote_addr head_addr, struct addr_list *list);

/* Read the words of a task. 0; -EBADMSG (it is none), -EFAULT, -ESRCH, -EPERM. */
int task_read(const struct task_reader *reader, remote_addr task_addr, struct task_words *ret_task);

/*
 * Its name, allocated (free() it): UTF-8 as string_read() has it, "Task-N" of those that nobody
 * named. 0; -EBADMSG, -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 */
int task_read_name(struct task_reader *reader, const struct task_words *task, char **ret_name);

/*
 * The tasks that await this one, also by way of futures that are no tasks, in awaiters, which is
 * cleared before. Those that cannot be read are left out. 0, -ENOMEM, -ESRCH, -EPERM.
 */
int task_read_awaiters(const struct task_reader *reader, const struct task_words *task,
		       struct addr_list *awaiters);

/*
 * The frames of a coroutine that is suspended: its own, and those of what it awaits, and so on.
 *
 * A coroutine, generator or asynchronous generator has its frame inside of it, and keeps what it
 * awaits on that frame's stack. In between may be objects that only pass on: what `__await__()`
 * of a coroutine, or `asend()` and `athrow()` of an asynchronous generator, give. What is none of
 * these, as the iterator of a future, ends the chain.
 *
 * Source: CPython 3.14 and 3.15 Objects/genobject.c, _PyGen_yf().
 */

/*
 * Longer chains are cut: -E2BIG. Each await is a call of C to C when it is resumed, so CPython's
 * recursion limit, 1000 unless a program raises it, holds for them as well.
 */
enum { AWAIT_CHAIN_MAX = 1 << 14 };

/*
 * Walk the chain that begins with the coroutine at coro_addr into list, outermost frame first.
 * The list tells as ever whether it is another one than before (nr_unchanged).
 *
 * 0; -EAGAIN, -EBADMSG (the objects do not hang together), -EFAULT, -E2BIG (too long, or in a
 * circle), -ENOMEM, -ESRCH, -EPERM; list then holds what was walked. The objects are read with
 * reader, code objects from that of codes, whose build has traits.generator_states.
 */
int await_chain_walk(struct code_cache *codes, struct task_reader *reader,
		     const struct code_clock *clock, remote_addr coro_addr,
		     struct frame_list *list);
