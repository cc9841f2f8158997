/* SPDX-License-Identifier: MIT */
/*
 * asyncio's tasks in CPython 3.8 to 3.13, which have no list of them for debuggers: the objects of
 * asyncio itself are read. The module asyncio.tasks names the sets of all tasks (weak references to
 * them, and tasks that were started eagerly), the dict that has the running task of each loop, and
 * the class of tasks. A thread state names its running loop.
 *
 * Nobody states who awaits a task. But a task that awaits an object names it (task_fut_waiter), and
 * the object has that task in its callbacks; so do gather(), wait(), wait_for(), shield() and
 * TaskGroup, each in its own way.
 *
 * Tasks are those of the C class asyncio.Task in _asyncio, or of a class that inherits from it. No
 * header has their structs; the offsets are those of a table, which is used only if the size of a
 * task is the one of the table.
 *
 * Source: CPython 3.8 to 3.13 Modules/_asynciomodule.c (FutureObj_HEAD, TaskObj,
 * PyRunningLoopHolder, task_wakeup()), Lib/asyncio/tasks.py, taskgroups.py, Lib/_weakrefset.py,
 * Include/weakrefobject.h (cpython/weakrefobject.h), Modules/_functoolsmodule.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/addr_list.h"
#include "sampler/cpython/layout/offsets.h"
#include "sampler/cpython/objects/object.h"

/* Offsets in the C structs of a task; a future begins like it. */
struct task_layout {
	uint32_t size;
	uint32_t loop;
	uint32_t callback0; /* the first callback, or NULL */
	uint32_t callbacks; /* a list of tuples (callback, context) of the others, or NULL */
	uint32_t state;	    /* int; 0 while it is pending */
	uint32_t waiter;    /* what the task awaits, or NULL */
	uint32_t coro;
	uint32_t name;
	uint32_t wakeup_word; /* which word of what wakes a task, after its type, is the task */
};

/* Where asyncio's tasks are in one interpreter. */
struct asyncio_objects {
	remote_addr interp_addr;
	struct task_layout layout;
	remote_addr task_type_addr;
	remote_addr future_type_addr; /* its base class */
	remote_addr current_addr;     /* a dict: the running task of each loop */
	remote_addr weak_set_addr;    /* a WeakSet of tasks */
	remote_addr eager_set_addr;   /* a set of tasks (3.12, 3.13), or 0 */
};

/* A task, or a future, which only has the first four. */
struct asyncio_object {
	bool is_task;
	bool is_done;
	remote_addr loop_addr;
	remote_addr callback0_addr, callbacks_addr;
	remote_addr waiter_addr;
	remote_addr coro_addr;
	remote_addr name_addr;
};

/* Whether tasks of that build are read in this way. */
bool asyncio_objects_known(const struct py_build *build);

/*
 * Find the objects of the interpreter at interp_addr. Returns 0; -ENOENT (it has not imported
 * asyncio, or only without its C part); -ENOTSUP (its tasks have another size than those known);
 * -EBADMSG, -EFAULT, -E2BIG (something is damaged, or changed meanwhile); -ESRCH, -EPERM.
 */
int asyncio_objects_find(struct remote_memory *memory, const struct py_build *build,
			 remote_addr interp_addr, struct asyncio_objects *ret_objects);

/*
 * Read which loop runs in the thread whose state is at thread_addr; 0: none. Returns 0, -EBADMSG,
 * -EFAULT, -E2BIG, -ESRCH or -EPERM.
 */
int asyncio_objects_loop(struct remote_memory *memory, const struct py_build *build,
			 remote_addr thread_addr, remote_addr *ret_loop_addr);

/* Read which task that loop executes; 0: none. The same errors. */
int asyncio_objects_running(struct remote_memory *memory, const struct py_build *build,
			    const struct asyncio_objects *objects, remote_addr loop_addr,
			    remote_addr *ret_task_addr);

/*
 * List all tasks of the interpreter, up to max_tasks; list is empty before. Returns 0; -EAGAIN (a
 * set changed meanwhile); -E2BIG (there are more, or a set is too large); -EBADMSG, -EFAULT,
 * -ENOMEM, -ESRCH, -EPERM. After an error list has the tasks found so far. What is not a task may
 * be among them.
 */
int asyncio_objects_list(struct remote_memory *memory, const struct py_build *build,
			 const struct asyncio_objects *objects, uint32_t max_tasks,
			 struct addr_list *list);

/* Read a task or future. Returns 0; -EBADMSG (it is none); -EFAULT, -ESRCH, -EPERM. */
int asyncio_objects_read(struct remote_memory *memory, const struct py_offsets *offsets,
			 const struct asyncio_objects *objects, remote_addr addr,
			 struct asyncio_object *ret_object);
