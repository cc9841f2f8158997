/* SPDX-License-Identifier: MIT */
/*
 * Recognises locks of threading and multiprocessing among the values of a frame: the lock itself, a
 * bound method of it, or a Lock of multiprocessing, which has the real one in an attribute.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

enum lock_object_kind {
	LOCK_OBJECT_NONE,
	LOCK_OBJECT_LOCK,    /* _thread.lock */
	LOCK_OBJECT_RLOCK,   /* _thread.RLock */
	LOCK_OBJECT_SEMLOCK, /* _multiprocessing.SemLock */
};

struct lock_object {
	enum lock_object_kind kind;
	uint64_t mutex_addr;	 /* the end of ob_type, where the object's own data begins */
	uint64_t semaphore_addr; /* the first word there */
	uint64_t owner_ident;	 /* who holds it; 0: nobody in this process, or unknown */
	/*
	 * Found as a `with` statement keeps it: through its method __exit__. Of methods written in
	 * Python, as of the locks of multiprocessing, the name is not read.
	 */
	bool is_exit;
};

/* What is known of types by address. Empty if all zero. */
enum { NR_LOCK_TYPES = 64 };
struct lock_types {
	struct lock_type {
		remote_addr addr;
		int kind;
	} types[NR_LOCK_TYPES];
};

/*
 * Read the lock that value_addr refers to. below_addr is the value below it on the stack, or 0: a
 * `with` statement keeps the function and its object in two words since 3.14. Returns 0, with kind
 * LOCK_OBJECT_NONE if there is no lock, also if value_addr is no object at all; -E2BIG, -ESRCH,
 * -EPERM.
 *
 * Source: CPython Modules/_threadmodule.c, Modules/_multiprocessing/semaphore.c,
 * Lib/multiprocessing/synchronize.py, 3.6 to 3.15.
 */
int lock_object_read(struct remote_memory *memory, const struct py_build *build,
		     struct lock_types *types, remote_addr value_addr, remote_addr below_addr,
		     struct lock_object *ret_lock);
