/* SPDX-License-Identifier: MIT */
/*
 * The locks that the frames of a tree refer to, sorted: which one a thread waits for, and which
 * thread holds it. A lookup costs the logarithm of their number.
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

/* Which lock it is: an object of one process, or a place in memory that processes share. */
struct lock_key {
	bool is_shared;
	uint64_t space; /* index of the process; of a shared one, its device */
	uint64_t inode; /* 0 unless shared */
	uint64_t addr;	/* of the object's own data; of a shared one, the offset in the file */
};

/* A lock that a thread waits for. */
struct lock_wait {
	struct tree_thread waiter;
	struct lock_key key;
	const char *what; /* static: "a threading.Lock" */
	bool has_holder;
	struct tree_thread holder; /* valid if has_holder */
};

/* Returns the wait of a thread, of waits in the order of the tree; NULL if it waits for no lock. */
const struct lock_wait *lock_wait_find(const struct lock_wait *waits, uint32_t nr_waits,
				       const struct tree_thread *waiter);

struct lock_index;

/* Index the locks of a tree, which is borrowed. Returns NULL if out of memory. */
struct lock_index *lock_index_create(const struct tree *tree);
void lock_index_destroy(struct lock_index *index);

/* Find the lock that a thread waits for, without its holder. Returns false if it is not known. */
bool lock_index_find_wait(const struct lock_index *index, const struct tree_thread *waiter,
			  struct lock_wait *ret_wait);

/*
 * Find the holders of the locks of waits, which are in the order of the tree. A thread that waits
 * for a lock itself counts as its holder only if no other thread does: it may have released the
 * lock, or have copied the claim from its parent by fork(2). Returns 0 or -ENOMEM.
 */
int lock_index_find_holders(struct lock_index *index, struct lock_wait *waits, uint32_t nr_waits);
