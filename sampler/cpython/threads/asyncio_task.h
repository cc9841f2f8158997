/* SPDX-License-Identifier: MIT */
/*
 * asyncio's tasks, and who awaits them, from 3.14 on: those that are, or inherit from,
 * asyncio.Task as _asyncio has it in C. A thread state heads the list of those that its event
 * loop runs, an interpreter state that of threads that have ended.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c (TaskObj, register_task(),
 * future_awaited_by_add()), Include/internal/pycore_llist.h, Objects/setobject.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/layout/asyncio_offsets.h"
#include "sampler/cpython/objects/value_types.h"

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

/* The words of a task. */
struct task_words {
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
