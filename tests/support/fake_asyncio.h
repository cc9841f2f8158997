/* SPDX-License-Identifier: MIT */
/*
 * asyncio in a fake CPython 3.8 to 3.13: a thread runs an event loop with three tasks. The last
 * one runs. Each awaits the one before: the second directly, the third through gather(). Each has
 * a coroutine that awaits another coroutine.
 */
#pragma once

#include "sampler/cpython/threads/asyncio_objects.h"
#include "tests/support/fake_objects.h"

enum { NR_FAKE_TASKS = 3, NR_FAKE_TASK_MINORS = 7 };

/* Those versions, and the free-threaded 3.13. */
extern const uint32_t fake_task_minors[NR_FAKE_TASK_MINORS];

/* Addresses, for tests that damage or compare them. */
struct fake_asyncio {
	remote_addr thread_addr;
	remote_addr loop_addr;
	remote_addr task_type_addr;
	remote_addr future_type_addr;
	remote_addr tasks[NR_FAKE_TASKS];
	remote_addr modules_addr;
};

/* The names of the tasks. */
extern const char *const fake_task_names[NR_FAKE_TASKS];

/* Make all that in py, whose version is one of those. */
void fake_asyncio_init(struct fake_python *py, struct fake_asyncio *ret_asyncio);

/* Give a task or future a callback: an object that has these two words after its type. */
void fake_asyncio_callback(struct fake_python *py, remote_addr future_addr, uint64_t first,
			   uint64_t second);
