/* SPDX-License-Identifier: MIT */
#include "cmd/dump/lock_holders.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/maps.h"
#include "procmem/sched/blocking_calls.h"
#include "sampler/cpython/layout/object_offsets.h"

/* The lock that a thread waits for, as far as its own process shows. */
struct wanted {
	uint64_t futex_addr;
	uint64_t parked_addr; /* of the mutex, if it waits in the parking lot; or nonsense */
	bool is_known;	      /* a lock that the process's frames refer to */
	enum sample_lock_kind kind;
};

/* A place in memory that processes share. */
struct shared_place {
	uint32_t dev_major, dev_minor;
	uint64_t inode, offset;
};

static const struct waits *waits_of(const struct tree *tree, size_t process)
{
	return &tree->taken[process]->waits;
}

/* Whether a lock is the one that is wanted, within the same process. */
static bool is_wanted(const struct sample_lock *lock, const struct wanted *wanted)
{
	if (lock->semaphore_addr == wanted->futex_addr)
		return true;
	return lock->kind != SAMPLE_LOCK_PROCESS && wanted->parked_addr &&
	       lock->mutex_addr == wanted->parked_addr;
}

/* Returns the lock among those of a thread; NULL if it is not there. */
static const struct sample_lock *find_lock(const struct looked_thread *thread,
					   const struct wanted *wanted)
{
	for (uint32_t i = 0; i < thread->nr_locks; i++)
		if (is_wanted(&thread->locks[i], wanted))
			return &thread->locks[i];
	return NULL;
}

/* Returns the lock among those of a process; NULL if it is not there. */
static const struct sample_lock *find_in_process(const struct waits *waits,
						 const struct wanted *wanted)
{
	const struct sample_lock *lock = NULL;

	for (uint32_t i = 0; !lock && i < waits->nr_threads; i++)
		lock = find_lock(&waits->threads[i], wanted);
	return lock;
}

/* Find what a thread waits for. Returns false if it waits in no futex. */
static bool read_wanted(const struct tree *tree, const struct tree_thread *waiter,
			struct wanted *ret_wanted)
{
	const struct looked_thread *thread =
		&waits_of(tree, waiter->process)->threads[waiter->thread];
	const struct blocking_call *call =
		thread->has_call ? blocking_call_find(thread->call.number) : NULL;
	const uint64_t operation = thread->call.arguments[1] & (uint32_t)FUTEX_CMD_MASK;
	struct wanted wanted = {.futex_addr = thread->call.arguments[0]};
	const struct sample_lock *lock;

	if (!call || call->kind != CALL_FUTEX ||
	    (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET))
		return false;
	if (remote_memory_read_u64(&tree->taken[waiter->process]->target.live.memory,
				   wanted.futex_addr - PARKED_ADDR_BEFORE_FUTEX,
				   &wanted.parked_addr))
		wanted.parked_addr = 0;
	lock = find_in_process(waits_of(tree, waiter->process), &wanted);
	wanted.is_known = lock != NULL;
	if (lock)
		wanted.kind = lock->kind;
	*ret_wanted = wanted;
	return true;
}

/* Find a place in shared memory. Returns false if it is not in any. */
static bool find_shared(const struct tree *tree, size_t process, uint64_t addr,
			struct shared_place *ret_place)
{
	const struct mapping *mapping = maps_find(&tree->taken[process]->target.maps, addr);

	if (!mapping || !mapping->inode || !strstr(mapping->path, "/sem."))
		return false;
	*ret_place = (struct shared_place){
		.dev_major = mapping->dev_major,
		.dev_minor = mapping->dev_minor,
		.inode = mapping->inode,
		.offset = mapping->file_offset + (addr - mapping->start),
	};
	return true;
}

static bool is_same_place(const struct shared_place *a, const struct shared_place *b)
{
	return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->inode == b->inode && a->offset == b->offset;
}

/* The threads that may hold a lock. */
struct candidates {
	uint32_t nr;
	struct tree_thread first;
};

static void add_candidate(struct candidates *candidates, size_t process, uint32_t thread)
{
	const struct tree_thread found = {process, thread};

	if (candidates->nr && candidates->first.process == process &&
	    candidates->first.thread == thread)
		return;
	if (!candidates->nr++)
		candidates->first = found;
}

/* Add the thread of a process with that ident. One that is not known counts, too. */
static void add_owner(struct candidates *candidates, const struct tree *tree, size_t process,
		      uint64_t ident)
{
	const struct waits *waits = waits_of(tree, process);

	for (uint32_t i = 0; i < waits->nr_threads; i++) {
		if (waits->threads[i].ident != ident)
			continue;
		add_candidate(candidates, process, i);
		return;
	}
	candidates->nr += 2;
}

/* Who holds a lock of threading: it is in the waiter's process. */
static void find_in_threads(const struct tree *tree, size_t process, const struct wanted *wanted,
			    struct candidates *candidates)
{
	const struct waits *waits = waits_of(tree, process);

	for (uint32_t i = 0; i < waits->nr_threads; i++) {
		const struct sample_lock *lock = find_lock(&waits->threads[i], wanted);

		if (!lock)
			continue;
		if (wanted->kind == SAMPLE_LOCK_RECURSIVE && lock->owner_ident)
			add_owner(candidates, tree, process, lock->owner_ident);
		else if (wanted->kind == SAMPLE_LOCK_THREAD && lock->is_inside)
			add_candidate(candidates, process, i);
	}
}

/* Who holds a lock of multiprocessing: it may be in any process. */
static void find_in_processes(const struct tree *tree, const struct shared_place *place,
			      struct candidates *candidates)
{
	for (size_t i = 0; i < tree->nr_processes; i++) {
		const struct waits *waits = waits_of(tree, i);

		for (uint32_t k = 0; k < waits->nr_threads; k++) {
			const struct looked_thread *thread = &waits->threads[k];

			for (uint32_t n = 0; n < thread->nr_locks; n++) {
				const struct sample_lock *lock = &thread->locks[n];
				struct shared_place other;

				if (lock->kind == SAMPLE_LOCK_PROCESS && lock->owner_ident &&
				    find_shared(tree, i, lock->semaphore_addr, &other) &&
				    is_same_place(place, &other))
					add_owner(candidates, tree, i, lock->owner_ident);
			}
		}
	}
}

/* Find the lock that a thread waits for. Returns false if it waits for none that is known. */
static bool find_wait(const struct tree *tree, const struct tree_thread *waiter,
		      struct lock_wait *ret_wait)
{
	static const char *const names[NR_SAMPLE_LOCK_KINDS] = {
		[SAMPLE_LOCK_THREAD] = "a threading.Lock",
		[SAMPLE_LOCK_RECURSIVE] = "a threading.RLock",
		[SAMPLE_LOCK_PROCESS] = "a multiprocessing lock",
	};
	struct candidates candidates = {0};
	struct shared_place place;
	struct wanted wanted;
	const char *what = NULL;

	if (!read_wanted(tree, waiter, &wanted))
		return false;
	if (find_shared(tree, waiter->process, wanted.futex_addr, &place)) {
		what = wanted.is_known ? names[SAMPLE_LOCK_PROCESS]
				       : "a semaphore that processes share";
		if (wanted.is_known)
			find_in_processes(tree, &place, &candidates);
	} else if (wanted.is_known && wanted.kind != SAMPLE_LOCK_PROCESS) {
		what = names[wanted.kind];
		find_in_threads(tree, waiter->process, &wanted, &candidates);
	}
	if (!what)
		return false;
	*ret_wait = (struct lock_wait){
		.waiter = *waiter,
		.what = what,
		.has_holder = candidates.nr == 1,
		.holder = candidates.first,
	};
	return true;
}

int lock_waits_find(struct lock_waits *waits, const struct tree *tree)
{
	for (size_t i = 0; i < tree->nr_processes; i++) {
		const uint32_t nr_threads = waits_of(tree, i)->nr_threads;

		for (uint32_t k = 0; k < nr_threads; k++) {
			const struct tree_thread waiter = {i, k};
			struct lock_wait *rows = array_reserve(waits->waits, waits->nr_waits + 1,
							       &waits->max_waits, sizeof(*rows));

			if (!rows)
				return -ENOMEM;
			waits->waits = rows;
			waits->nr_waits += find_wait(tree, &waiter, &rows[waits->nr_waits]);
		}
	}
	return 0;
}

void lock_waits_done(struct lock_waits *waits)
{
	free(waits->waits);
	*waits = (struct lock_waits){.waits = NULL};
}

const struct lock_wait *lock_waits_get(const struct lock_waits *waits,
				       const struct tree_thread *waiter)
{
	for (uint32_t i = 0; i < waits->nr_waits; i++)
		if (waits->waits[i].waiter.process == waiter->process &&
		    waits->waits[i].waiter.thread == waiter->thread)
			return &waits->waits[i];
	return NULL;
}
