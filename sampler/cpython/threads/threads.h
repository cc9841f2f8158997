/* SPDX-License-Identifier: MIT */
/*
 * The threads of a target: its interpreter states and thread states, by following CPython's own
 * lists; the kernel's ids of those that do not say them; and the names that Python has for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/frame.h"
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
	uint32_t max_interpreters, max_threads; /* there is room for so many */
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

/*
 * The kernel's ids of threads of which only the pthread_t is known: before 3.11 a thread
 * state has no other. A pthread_t is the address of the C library's struct pthread, which
 * holds the id at a constant place: 720 in glibc on x86-64, elsewhere on other machines
 * and in other libraries. Nobody exports the place, so it is learnt from the target: it is
 * where every thread has an id that is one of the process's, and each another one.
 */

/* The place of the id in struct pthread. Zero: not learnt. */
struct pthread_layout {
	uint32_t tid_offset;
	bool is_known;
	bool is_sure; /* two threads or more agree; one alone may have its id in many places */
};

/*
 * Learn it. idents are pthread_t of threads of the process, of which as many as are needed
 * are looked at, the last ones first; tids all ids of its threads as they see themselves,
 * read after idents; they are sorted. Threads may have ended in between. 0; -ENOENT (there is no
 * such place), -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: glibc nptl/descr.h, musl src/internal/pthread_impl.h.
 */
int pthread_layout_learn(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 pid_t *tids, size_t nr_tids, struct pthread_layout *ret_layout);

/*
 * The id of the thread ident, as it sees itself; whether it is one of the process's is the
 * caller's to check. 0; -ENOENT (the thread has ended), -EBADMSG (no id), -EFAULT, -ESRCH,
 * -EPERM.
 */
int pthread_read_tid(struct remote_memory *memory, const struct pthread_layout *layout,
		     uint64_t ident, pid_t *ret_tid);

/*
 * The names that Python's own threading module keeps: sys.modules["threading"]._active is
 * a dict of Thread objects by ident, which is the pthread_t that a thread state has as its
 * thread_id. Each interpreter has its own. The name that the kernel knows has 15 bytes, and
 * before 3.14 nobody sets it.
 */

/* A thread whose name is wanted. */
struct named_thread {
	uint64_t ident;	    /* its thread state's thread_id */
	uint64_t native_id; /* the kernel's, as it sees itself; 0: the Thread may have any */
	size_t index;	    /* the caller's: the array is sorted */
	char name[THREAD_NAME_MAX_BYTES]; /* the answer: "" if it has none */
};

/*
 * Only so many keys are looked at in sys.modules, from the first on, and in a module: big
 * programs have some thousand modules, and import threading early. What lies behind them
 * is not found.
 */
#define THREAD_NAMES_MAX_KEYS 8192

/* The same of a Thread, which has about 20 attributes of its own, before those of others. */
#define THREAD_MAX_ATTRIBUTES 128

/*
 * What was found out of one interpreter: where it lay last, in the modules, in threading, in
 * a Thread; the entry of _active behind that of the last name; which table of modules has no
 * threading. Zero is good to begin with. Wrong places cost time only; the table is looked
 * into again when it lies elsewhere or has more entries.
 */
struct thread_name_hints {
	uint32_t threading, active, ident, native_id, name;
	uint32_t next_entry;
	uint32_t nr_missing_entries;
	remote_addr missing_entries_addr; /* 0: none */
};

/*
 * Give the threads of the interpreter at interp_addr their names, in one pass over the
 * dict of threads; they are sorted by ident. A name is UTF-8, cut between two code points
 * if it is too long, with its control characters; only that of a Thread whose own _ident is
 * the thread's, and whose _native_id is (3.8 and newer): an ident is used again as soon as
 * its thread has ended. After a fork the _native_id of the thread that is left is old. A
 * dict that was torn or damaged gives no names, never an error.
 *
 * The dict is read from hints->next_entry on, and no further than to the last name that is
 * wanted. A hostile one has 131,072 entries that each cost hundreds of reads: whoever cannot
 * wait for that hands in a struct bounded_memory, and gets the names that were read until
 * its bound.
 *
 * 0; -ENOENT (no threading there: not imported, or not to be read), -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Lib/threading.py, 3.6 to 3.15.
 */
int thread_names_read(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct thread_name_hints *hints,
		      struct named_thread *threads, size_t nr_threads);
