/* SPDX-License-Identifier: MIT */
/*
 * Which lock each waiting thread of a tree waits for, and which thread holds that. A lock is
 * recognised by the futex that its waiter is in: it belongs to the lock's semaphore, or to the
 * waiter's entry in CPython's parking lot, which has the address of the lock. An RLock and the
 * locks of multiprocessing know who holds them; a Lock is held by the only thread that is inside a
 * `with` statement on it. Where this does not give exactly one thread, the holder is not known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/dump/tree.h"

/* A thread of the tree. */
struct tree_thread {
	size_t process;	 /* index into the tree's processes */
	uint32_t thread; /* index into the process's waits.threads */
};

struct lock_wait {
	struct tree_thread waiter;
	const char *what; /* static: "a threading.Lock" */
	bool has_holder;
	struct tree_thread holder; /* valid if has_holder */
};

/* Empty when all zero. */
struct lock_waits {
	struct lock_wait *waits; /* owned; in the order of the tree */
	uint32_t nr_waits, max_waits;
};

/* Find them. Returns 0 or -ENOMEM; lock_waits_done() must follow in any case. */
int lock_waits_find(struct lock_waits *waits, const struct tree *tree);
void lock_waits_done(struct lock_waits *waits);

/* Returns the wait of a thread; NULL if it waits for no known lock. */
const struct lock_wait *lock_waits_get(const struct lock_waits *waits,
				       const struct tree_thread *waiter);
