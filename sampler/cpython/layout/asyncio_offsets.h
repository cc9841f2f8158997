/* SPDX-License-Identifier: MIT */
/*
 * Where asyncio's tasks lie: the numbers that CPython's _asyncio module carries of its structs,
 * from 3.14 on, in a variable of its data (section .AsyncioDebug). No symbol leads there, and
 * section names are in files alone, which may be gone: so the variable is found in memory, by
 * what it says. One of its numbers is the exact size of the interpreter state, which the
 * runtime tells as well, and all others have to fit theirs.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c, Py_AsyncioModuleDebugOffsets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* Room for the C part of a task: 200 bytes in 3.15, 232 in its debug builds. */
#define TASK_MAX_BYTES 512

/*
 * So much writable memory of files is looked through, and so much of one mapping: the whole
 * _asyncio or libpython has a few MiB of variables, larger ones are a program's data. Where there
 * is more, tasks may not be found.
 */
#define ASYNCIO_SEARCH_MAX_BYTES  (256u << 20)
#define ASYNCIO_MAPPING_MAX_BYTES (32u << 20)

/* The words of the variable, in its order. */
struct asyncio_offsets {
	struct {
		uint32_t size;
		uint32_t name;		    /* str, or int: the number of one that has no name */
		uint32_t awaited_by;	    /* a task or future, or a set of them, or NULL */
		uint32_t is_task;	    /* char; futures have it, too */
		uint32_t awaited_by_is_set; /* char */
		uint32_t coro;
		uint32_t node; /* of a list of tasks: address of the next node, of the one before */
	} task;
	struct {
		uint32_t size;
		uint32_t tasks_head; /* a node: tasks of threads that have ended */
	} interpreter;
	struct {
		uint32_t size;
		uint32_t running_loop;
		uint32_t running_task;
		uint32_t tasks_head;
	} thread;
};

/* So many words the variable has, and bytes. */
enum {
	NR_ASYNCIO_WORDS = sizeof(struct asyncio_offsets) / sizeof(uint32_t),
	ASYNCIO_DEBUG_BYTES = NR_ASYNCIO_WORDS * sizeof(uint64_t),
};

/* Whether bytes are the variable, in a build with those offsets. */
bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio);

/*
 * Find it in what the modules of maps have in memory. 0; -ENOENT (asyncio is not loaded; or,
 * where *ret_whole is false, in what could not be read or is beyond the limits above), -ENOTSUP
 * (a version that is not asked for tasks: older than 3.14, or newer than those known), -ENOMEM,
 * -ESRCH, -EPERM. *ret_whole is set with 0 and -ENOENT.
 */
int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole);
