/* SPDX-License-Identifier: MIT */
/*
 * The names that Python's own threading module keeps: sys.modules["threading"]._active is
 * a dict of Thread objects by ident, which is the pthread_t that a thread state has as its
 * thread_id. Each interpreter has its own. The name that the kernel knows has 15 bytes, and
 * before 3.14 nobody sets it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * Room for a thread's name and a NUL. People's names for threads are shorter; a longer one
 * is cut.
 */
#define THREAD_NAME_MAX_BYTES 128

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
