/* SPDX-License-Identifier: MIT */
/*
 * Where asyncio's tasks are: the struct offsets that CPython's _asyncio module, from 3.14 on,
 * carries in a variable of its data (section .AsyncioDebug). No symbol names the variable, and
 * section names exist only in files, which may be gone. So it is found in memory by its contents:
 * one of its numbers is the exact size of the interpreter state, which the runtime also states, and
 * all others must fit their structs.
 *
 * Source: CPython 3.14 and 3.15 Modules/_asynciomodule.c, Py_AsyncioModuleDebugOffsets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* Size of the buffer for the C part of a task: 200 bytes in 3.15, 232 in its debug builds. */
#define TASK_MAX_BYTES 512

/*
 * Limits on the file-backed writable memory that is searched, in all and per mapping. The variables
 * of _asyncio or of a whole libpython are a few MiB; a larger mapping is a program's data. Beyond
 * the limits tasks may not be found.
 */
#define ASYNCIO_SEARCH_MAX_BYTES  (256u << 20)
#define ASYNCIO_MAPPING_MAX_BYTES (32u << 20)

/* The words of the variable, in its order. */
struct asyncio_offsets {
	struct {
		uint32_t size;
		uint32_t name;		    /* str, or int: the number of an unnamed task */
		uint32_t awaited_by;	    /* a task or future, a set of them, or NULL */
		uint32_t is_task;	    /* char; futures have it as well */
		uint32_t awaited_by_is_set; /* char */
		uint32_t coro;
		uint32_t node; /* of a list of tasks: addresses of the next and previous node */
	} task;
	struct {
		uint32_t size;
		uint32_t tasks_head; /* a node; heads the tasks of threads that have ended */
	} interpreter;
	struct {
		uint32_t size;
		uint32_t running_loop;
		uint32_t running_task;
		uint32_t tasks_head;
	} thread;
};

/* The size of the variable, in words and in bytes. */
enum {
	NR_ASYNCIO_WORDS = sizeof(struct asyncio_offsets) / sizeof(uint32_t),
	ASYNCIO_DEBUG_BYTES = NR_ASYNCIO_WORDS * sizeof(uint64_t),
};

/* Whether bytes are the variable, in a build with those offsets. If so, fills *ret_asyncio. */
bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio);

/*
 * Find the variable in the memory of the modules in maps. Returns 0; -ENOENT (asyncio is not
 * loaded, or, if *ret_whole is false, the variable may be in memory that could not be read or
 * exceeds the limits above); -ENOTSUP (tasks are not read for this version: older than 3.14, or
 * newer than those known); -ENOMEM, -ESRCH, -EPERM. *ret_whole is set with 0 and -ENOENT.
 */
int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole);
