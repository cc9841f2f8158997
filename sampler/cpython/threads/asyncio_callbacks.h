/* SPDX-License-Identifier: MIT */
/*
 * Who awaits a task or future, in CPython 3.8 to 3.13: it has what wakes them among its callbacks.
 *
 *   a task                       the task, in a TaskWakeupMethWrapper (to 3.9) or a method written
 *                                in C; it names what it awaits, so this is proven
 *   gather(), shield(), wait()   a future, in a variable that their function shares with its
 *                                callback
 *   wait_for() (to 3.11)         a future, the argument of a functools.partial
 *   TaskGroup (3.11 and newer)   the task that entered the group
 *
 * The last four are recognised by the name of the callback. Other callbacks await nothing, as far
 * as can be known. The types of callbacks are not read: a core file may lack the names of types.
 */
#pragma once

#include "sampler/cpython/threads/asyncio_objects.h"

/* What to read, and where to append what is found. All borrowed. */
struct callback_reader {
	struct remote_memory *memory;
	const struct py_build *build;
	const struct asyncio_objects *objects;
	remote_addr awaited_addr; /* the task or future whose callbacks are read */
	struct addr_list *awaiting;
	uint32_t max_awaiting; /* further ones are left out */
};

/*
 * Append the tasks and futures that await object, which is at reader->awaited_addr. Callbacks that
 * cannot be read are left out. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
int asyncio_callbacks_read(const struct callback_reader *reader,
			   const struct asyncio_object *object);
