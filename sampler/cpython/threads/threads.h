/* SPDX-License-Identifier: MIT */
/* The interpreter states and thread states of a target, by following CPython's own lists. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* Longer lists are taken for damage (a torn link), as circles are: -E2BIG. */
#define MAX_INTERPRETERS 4096
#define MAX_THREADS	 65536

struct interpreter_ref {
	remote_addr addr;
	int64_t id; /* 0 is the main interpreter; 3.6 has none: its place in the list */
	remote_addr next_addr;
	remote_addr threads_head_addr;
};

struct thread_ref {
	remote_addr addr; /* of the PyThreadState */
	remote_addr next_addr;
	size_t interpreter;  /* index into the list's interpreters */
	uint64_t thread_id;  /* pthread_t; 0 if it was never bound to a thread */
	uint64_t native_tid; /* as the thread sees itself; 0 if never bound, or before 3.11 */
	uint64_t unique_id;  /* of 3.7 to 3.10, else 0; the other ids are used again */
};

/* Both lists, newest first as CPython keeps them. Zero-initialised it is empty. */
struct thread_list {
	struct interpreter_ref *interpreters;
	size_t nr_interpreters;
	struct thread_ref *threads;
	size_t nr_threads;
	int err; /* why some list could not be read to its end; 0: all were */
};

/*
 * Read the lists. is_still: the memory stands still and may lack pieces, and the lists are read as
 * far as they can be: ret_list->err then, and an error only if no interpreter can be read.
 *
 * 0; -ENOENT (the runtime has no interpreter yet, or none any more), -EBADMSG (a thread state
 * that is not of its interpreter: the list changed, or this is no runtime), -E2BIG, -EFAULT,
 * -ENOMEM, -ESRCH, -EPERM. thread_list_done() frees what the list holds, which is empty then; it
 * accepts NULL and an empty one.
 *
 * Source: CPython 3.11–3.15 Python/pystate.c (PyInterpreterState_Head,
 * PyInterpreterState_ThreadHead and their Next).
 */
int thread_list_read(struct remote_memory *memory, const struct py_build *build,
		     remote_addr runtime_addr, bool is_still, struct thread_list *ret_list);
void thread_list_done(struct thread_list *list);

/*
 * Whether a thread state, of which thread_head_bytes() were read, is still that of the
 * thread: memory, pthread_t and thread ids are all used again, seldom all at once. (3.6 has
 * none but the first two.)
 */
bool thread_ref_matches(const struct thread_ref *ref, const struct py_offsets *offsets,
			const uint8_t *state);
