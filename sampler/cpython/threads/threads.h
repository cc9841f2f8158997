/* SPDX-License-Identifier: MIT */
/*
 * Reads the threads of a target: its interpreter states and thread states, by following CPython's
 * own lists; the kernel's thread ids where thread states lack them; and the names that Python's
 * threading module has for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/memory.h"
#include "sampler/cpython/base/frame.h"
#include "sampler/cpython/layout/offsets.h"

/* Longer lists count as damage (a torn link), like cycles: -E2BIG. */
#define MAX_INTERPRETERS 4096
#define MAX_THREADS	 65536

struct interpreter_ref {
	remote_addr addr;
	int64_t id; /* 0 is the main interpreter; in 3.6 its place in the list, from the end */
	remote_addr next_addr;
	remote_addr threads_head_addr;
};

struct thread_ref {
	remote_addr addr; /* of the PyThreadState */
	remote_addr next_addr;
	size_t interpreter;  /* index into the list's interpreters */
	uint64_t thread_id;  /* pthread_t; 0 if it was never bound to a thread */
	uint64_t native_tid; /* in its own PID namespace; 0 if never bound, or before 3.11 */
	uint64_t unique_id;  /* 3.7 to 3.10, else 0; the other ids are reused */
	/*
	 * set by the caller: the thread that it was found to be of, in the thread's PID namespace.
	 * After a fork native_tid is still that of the parent, and soon this one; 0: unknown
	 */
	uint64_t found_tid;
};

/* Both lists, newest first as in CPython. Empty if zero-initialised. */
struct thread_list {
	struct interpreter_ref *interpreters;
	size_t nr_interpreters;
	struct thread_ref *threads;
	size_t nr_threads;
	uint32_t max_interpreters, max_threads; /* capacities */
	int err; /* why a list could not be read to its end; 0: all were */
};

/*
 * Read the lists. is_core: the memory stands still and may lack pieces; the lists are then read as
 * far as possible and ret_list->err is set; an error is only returned if no interpreter can be
 * read.
 *
 * Returns 0; -ENOENT (the runtime has no interpreter yet, or none any more); -EBADMSG (a thread
 * state that does not name its interpreter: the list changed, or this is no runtime); -E2BIG,
 * -EFAULT, -ENOMEM, -ESRCH, -EPERM. thread_list_done() frees the lists and leaves them empty; it
 * accepts NULL and an empty list.
 *
 * Source: CPython 3.11–3.15 Python/pystate.c (PyInterpreterState_Head,
 * PyInterpreterState_ThreadHead and their Next).
 */
int thread_list_read(struct remote_memory *memory, const struct py_build *build,
		     remote_addr runtime_addr, bool is_core, struct thread_list *ret_list);
void thread_list_done(struct thread_list *list);

/*
 * Whether two states at one address, read one after the other, belong to the same thread. Memory,
 * pthread_t and thread ids are all reused, but seldom all at once. (3.6 has only the first two.)
 */
bool thread_ref_is_same(const struct thread_ref *ref, const struct thread_ref *now);

/* The same for a state of which thread_head_bytes() were read now. */
bool thread_ref_matches(const struct thread_ref *ref, const struct py_offsets *offsets,
			const uint8_t *state);

/*
 * Kernel thread ids of threads of which only the pthread_t is known, because a thread state before
 * 3.11 has no other id. A pthread_t is the address of the C library's struct pthread, which holds
 * the id at a constant offset: 720 in glibc on x86-64, others on other machines and in other
 * libraries. The offset is not exported, so it is learnt from the target: there every thread has an
 * id of the process, and each thread a different one.
 */

/* The offset of the id in struct pthread. Zero: not learnt. */
struct pthread_layout {
	uint32_t tid_offset;
	bool is_known;
	bool is_sure; /* at least two threads agree; a single one may have its id in many places */
};

/*
 * Learn the offset. idents are pthread_t of threads of the process, of which as many as needed are
 * read, the last ones first. tids are the ids of all its threads in their own PID namespace, read
 * after idents; this function sorts them. Threads may have ended in between. Returns 0; -ENOENT
 * (there is no such offset); -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: glibc nptl/descr.h, musl src/internal/pthread_impl.h.
 */
int pthread_layout_learn(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 pid_t *tids, size_t nr_tids, struct pthread_layout *ret_layout);

/*
 * Read the id of the thread ident in its own PID namespace. The caller must check that it is a
 * thread of the process. Returns 0; -ENOENT (the thread has ended); -EBADMSG (it is no id);
 * -EFAULT, -ESRCH, -EPERM.
 */
int pthread_read_tid(struct remote_memory *memory, const struct pthread_layout *layout,
		     uint64_t ident, pid_t *ret_tid);

/*
 * The names in Python's threading module: sys.modules["threading"]._active is a dict of Thread
 * objects by ident, which is the pthread_t in a thread state's thread_id. Each interpreter has its
 * own. The kernel's name has only 15 bytes, and is not set before 3.14.
 */

/* A thread whose name is requested. */
struct named_thread {
	uint64_t ident;	    /* thread_id of its thread state */
	uint64_t native_id; /* kernel's id in its own PID namespace; 0: not compared */
	size_t index;	    /* for the caller, since the array gets sorted */
	char name[THREAD_NAME_MAX_BYTES]; /* the result; "" if it has none */
};

/*
 * Number of keys searched in sys.modules and in a module; what comes after them is not found. Big
 * programs have some thousand modules, and import threading early.
 */
#define THREAD_NAMES_MAX_KEYS 8192

/* The same for a Thread, which sets about 20 attributes of its own before any others are added. */
#define THREAD_MAX_ATTRIBUTES 128

/*
 * Where things were last found in an interpreter: in sys.modules, in threading, in a Thread; the
 * entry of _active after the last name; and the table of modules that has no threading. Zero is a
 * valid start. Wrong hints only cost time; the table is searched again when its address or its
 * number of entries has changed.
 */
struct thread_name_hints {
	uint32_t threading, active, ident, native_id, name;
	uint32_t next_entry;
	uint32_t nr_missing_entries;
	remote_addr missing_entries_addr; /* 0: none */
};

/*
 * Set the names of the threads of the interpreter at interp_addr, and sort threads by ident. A name
 * is UTF-8 with its control characters; one that is too long is cut between two code points. The
 * name of a Thread is used only if its own _ident matches, and its _native_id (3.8 and newer),
 * because an ident is reused as soon as its thread has ended. After a fork, the _native_id of the
 * remaining thread is outdated. A torn or damaged dict gives no names, and no error.
 *
 * The dict is read once, from hints->next_entry on and round to it, until all names are found. A
 * hostile dict has 131,072 entries that cost hundreds of reads each. A caller that cannot wait for
 * that passes a struct bounded_memory, and gets the names that were read within its limit.
 *
 * Returns 0; -ENOENT (threading was not imported, or cannot be read); -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: CPython Lib/threading.py, 3.6 to 3.15.
 */
int thread_names_read(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct thread_name_hints *hints,
		      struct named_thread *threads, size_t nr_threads);
