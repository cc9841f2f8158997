/* SPDX-License-Identifier: MIT */
/*
 * Which lock each waiting thread of a tree waits for, and which thread holds that. A lock is
 * recognised by the futex that its waiter is in: it belongs to the lock's semaphore, or to the
 * waiter's entry in CPython's parking lot, which has the address of the lock. An RLock and the
 * locks of multiprocessing know who holds them; a Lock is held by the only thread that is inside a
 * `with` statement on it. Where this does not give exactly one thread, the holder is not known.
 */
#pragma once

#include <stdint.h>

#include "cmd/dump/lock_index.h"
#include "cmd/dump/tree.h"

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

/*
 * Find the circles: threads that wait for each other. *ret_circles is allocated (free() it); each
 * element is the first wait of a circle in the order of the tree, and the next ones are the waits
 * of the holders. Takes time in proportion to the number of waits. Returns 0 or -ENOMEM.
 */
int lock_waits_find_circles(const struct lock_waits *waits, const struct lock_wait ***ret_circles,
			    uint32_t *ret_nr_circles);
