/* SPDX-License-Identifier: MIT */
#include "cmd/dump/lock_index.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/maps.h"
#include "procmem/sched/blocking_calls.h"
#include "sampler/cpython/layout/object_offsets.h"

/* A thread that refers to a lock. */
struct reference {
	struct tree_thread thread;
	const struct sample_lock *lock;
};

/* A thread by the ident that its process knows it by. */
struct identity {
	size_t process;
	uint64_t ident;
	struct tree_thread thread;
};

/* A thread that may hold a lock. */
struct claim {
	struct lock_key key;
	struct tree_thread thread; /* NOBODY: one that is not in the tree */
	bool is_weak;		   /* it waits for the lock itself */
};

/* All claims to one lock. */
struct holder {
	struct lock_key key;
	struct tree_thread thread;
	bool is_weak;
	bool is_only; /* no other thread has as good a claim */
};

#define NOBODY ((struct tree_thread){SIZE_MAX, UINT32_MAX})

struct lock_index {
	const struct tree *tree; /* borrowed */
	struct reference *by_semaphore, *by_mutex;
	size_t nr_references;
	struct identity *identities;
	size_t nr_identities;
	struct claim *claims;
	uint32_t nr_claims, max_claims;
	struct holder *holders; /* made from the claims */
	size_t nr_holders;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_threads(const struct tree_thread *one, const struct tree_thread *two)
{
	const int order = compare_numbers(one->process, two->process);

	return order ? order : compare_numbers(one->thread, two->thread);
}

static int compare_keys(const void *a, const void *b)
{
	const struct lock_key *one = a, *two = b;
	int order = compare_numbers(one->is_shared, two->is_shared);

	if (!order)
		order = compare_numbers(one->space, two->space);
	if (!order)
		order = compare_numbers(one->inode, two->inode);
	return order ? order : compare_numbers(one->addr, two->addr);
}

static int compare_semaphores(const void *a, const void *b)
{
	const struct reference *one = a, *two = b;
	const int order = compare_numbers(one->thread.process, two->thread.process);

	return order ? order
		     : compare_numbers(one->lock->semaphore_addr, two->lock->semaphore_addr);
}

static int compare_mutexes(const void *a, const void *b)
{
	const struct reference *one = a, *two = b;
	const int order = compare_numbers(one->thread.process, two->thread.process);

	return order ? order : compare_numbers(one->lock->mutex_addr, two->lock->mutex_addr);
}

static int compare_identities(const void *a, const void *b)
{
	const struct identity *one = a, *two = b;
	const int order = compare_numbers(one->process, two->process);

	return order ? order : compare_numbers(one->ident, two->ident);
}

/* By lock, and weak ones last. */
static int compare_claims(const void *a, const void *b)
{
	const struct claim *one = a, *two = b;
	int order = compare_keys(&one->key, &two->key);

	if (!order)
		order = compare_numbers(one->is_weak, two->is_weak);
	return order ? order : compare_threads(&one->thread, &two->thread);
}

static int compare_waiters(const void *a, const void *b)
{
	const struct lock_wait *one = a, *two = b;

	return compare_threads(&one->waiter, &two->waiter);
}

/* Sort rows, of which there may be none. */
static void sort(void *rows, size_t nr, size_t size, int (*compare)(const void *, const void *))
{
	if (nr)
		qsort(rows, nr, size, compare);
}

/* Returns a row that equals wanted, or NULL. */
static const void *find(const void *wanted, const void *rows, size_t nr, size_t size,
			int (*compare)(const void *, const void *))
{
	return nr ? bsearch(wanted, rows, nr, size, compare) : NULL;
}

const struct lock_wait *lock_wait_find(const struct lock_wait *waits, uint32_t nr_waits,
				       const struct tree_thread *waiter)
{
	const struct lock_wait wanted = {.waiter = *waiter};

	return find(&wanted, waits, nr_waits, sizeof(wanted), compare_waiters);
}

static const struct looked_thread *thread_at(const struct lock_index *index,
					     const struct tree_thread *place)
{
	return &index->tree->taken[place->process]->waits.threads[place->thread];
}

/* Count the threads of the tree and the locks that they refer to. */
static void count(const struct tree *tree, size_t *ret_nr_threads, size_t *ret_nr_locks)
{
	*ret_nr_threads = *ret_nr_locks = 0;
	for (size_t i = 0; i < tree->nr_processes; i++) {
		const struct waits *waits = &tree->taken[i]->waits;

		*ret_nr_threads += waits->nr_threads;
		for (uint32_t k = 0; k < waits->nr_threads; k++)
			*ret_nr_locks += waits->threads[k].nr_locks;
	}
}

/* Add a thread, for which there is room. */
static void add_thread(struct lock_index *index, const struct tree_thread *place)
{
	const struct looked_thread *thread = thread_at(index, place);

	index->identities[index->nr_identities++] =
		(struct identity){place->process, thread->ident, *place};
	for (uint32_t i = 0; i < thread->nr_locks; i++)
		index->by_semaphore[index->nr_references++] =
			(struct reference){*place, &thread->locks[i]};
}

struct lock_index *lock_index_create(const struct tree *tree)
{
	struct lock_index *index = calloc(1, sizeof(*index));
	size_t nr_threads, nr_locks;

	if (!index)
		return NULL;
	count(tree, &nr_threads, &nr_locks);
	index->tree = tree;
	index->by_semaphore = calloc(nr_locks + 1, sizeof(*index->by_semaphore));
	index->by_mutex = calloc(nr_locks + 1, sizeof(*index->by_mutex));
	index->identities = calloc(nr_threads + 1, sizeof(*index->identities));
	if (!index->by_semaphore || !index->by_mutex || !index->identities) {
		lock_index_destroy(index);
		return NULL;
	}
	for (size_t i = 0; i < tree->nr_processes; i++)
		for (uint32_t k = 0; k < tree->taken[i]->waits.nr_threads; k++)
			add_thread(index, &(struct tree_thread){i, k});
	memcpy(index->by_mutex, index->by_semaphore, nr_locks * sizeof(*index->by_mutex));
	sort(index->by_semaphore, nr_locks, sizeof(*index->by_semaphore), compare_semaphores);
	sort(index->by_mutex, nr_locks, sizeof(*index->by_mutex), compare_mutexes);
	sort(index->identities, nr_threads, sizeof(*index->identities), compare_identities);
	return index;
}

void lock_index_destroy(struct lock_index *index)
{
	if (!index)
		return;
	free(index->by_semaphore);
	free(index->by_mutex);
	free(index->identities);
	free(index->claims);
	free(index->holders);
	free(index);
}

/* Find a place in shared memory. Returns false if it is not in any. */
static bool find_shared(const struct lock_index *index, size_t process, uint64_t addr,
			struct lock_key *ret_key)
{
	const struct mapping *mapping = maps_find(&index->tree->taken[process]->target.maps, addr);

	if (!mapping || !mapping->inode || !strstr(mapping->path, "/sem."))
		return false;
	*ret_key = (struct lock_key){
		.is_shared = true,
		.space = (uint64_t)mapping->dev_major << 32 | mapping->dev_minor,
		.inode = mapping->inode,
		.addr = mapping->file_offset + (addr - mapping->start),
	};
	return true;
}

/* Returns the lock that a thread of a process waits for in a futex; NULL if it is not known. */
static const struct sample_lock *find_lock(const struct lock_index *index, size_t process,
					   uint64_t futex_addr)
{
	struct sample_lock lock = {.semaphore_addr = futex_addr};
	const struct reference wanted = {.thread.process = process, .lock = &lock};
	const struct reference *found = find(&wanted, index->by_semaphore, index->nr_references,
					     sizeof(*found), compare_semaphores);

	if (found)
		return found->lock;
	/* If it does not wait in the parking lot, this is nonsense. */
	if (remote_memory_read_u64(&index->tree->taken[process]->target.live.memory,
				   futex_addr - PARKED_ADDR_BEFORE_FUTEX, &lock.mutex_addr))
		return NULL;
	found = find(&wanted, index->by_mutex, index->nr_references, sizeof(*found),
		     compare_mutexes);
	return found && found->lock->kind != SAMPLE_LOCK_PROCESS ? found->lock : NULL;
}

static struct lock_key key_of_object(size_t process, const struct sample_lock *lock)
{
	return (struct lock_key){.space = process, .addr = lock->mutex_addr};
}

bool lock_index_find_wait(const struct lock_index *index, const struct tree_thread *waiter,
			  struct lock_wait *ret_wait)
{
	static const char *const names[NR_SAMPLE_LOCK_KINDS] = {
		[SAMPLE_LOCK_THREAD] = "a threading.Lock",
		[SAMPLE_LOCK_RECURSIVE] = "a threading.RLock",
		[SAMPLE_LOCK_PROCESS] = "a multiprocessing lock",
	};
	const struct looked_thread *thread = thread_at(index, waiter);
	const struct blocking_call *call =
		thread->has_call ? blocking_call_find(thread->call.number) : NULL;
	const uint64_t operation = thread->call.arguments[1] & (uint32_t)FUTEX_CMD_MASK;
	const uint64_t futex_addr = thread->call.arguments[0];
	struct lock_wait wait = {.waiter = *waiter};
	const struct sample_lock *lock;

	if (!call || call->kind != CALL_FUTEX ||
	    (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET))
		return false;
	lock = find_lock(index, waiter->process, futex_addr);
	if (find_shared(index, waiter->process, futex_addr, &wait.key)) {
		wait.what = lock ? names[SAMPLE_LOCK_PROCESS] : "a semaphore that processes share";
	} else if (lock && lock->kind != SAMPLE_LOCK_PROCESS) {
		wait.what = names[lock->kind];
		wait.key = key_of_object(waiter->process, lock);
	} else {
		return false;
	}
	*ret_wait = wait;
	return true;
}

/* Returns the thread of a process with that ident, or NOBODY. */
static struct tree_thread find_owner(const struct lock_index *index, size_t process, uint64_t ident)
{
	const struct identity wanted = {.process = process, .ident = ident};
	const struct identity *found = find(&wanted, index->identities, index->nr_identities,
					    sizeof(*found), compare_identities);

	return found ? found->thread : NOBODY;
}

/* Find the thread that may hold a lock, by one reference to it. Returns false if it says nothing. */
static bool find_claim(const struct lock_index *index, const struct reference *reference,
		       struct claim *ret_claim)
{
	const size_t process = reference->thread.process;
	const struct sample_lock *lock = reference->lock;
	struct claim claim = {
		.key = key_of_object(process, lock),
		.thread = reference->thread,
	};

	if (lock->kind == SAMPLE_LOCK_THREAD) {
		if (!lock->is_inside)
			return false;
	} else if (!lock->owner_ident) {
		return false;
	} else {
		claim.thread = find_owner(index, process, lock->owner_ident);
	}
	if (lock->kind == SAMPLE_LOCK_PROCESS &&
	    !find_shared(index, process, lock->semaphore_addr, &claim.key))
		return false;
	*ret_claim = claim;
	return true;
}

/* Whether a thread is inside a `with` statement on a lock that is also another reference's. */
static bool is_inside(const struct lock_index *index, const struct tree_thread *place,
		      const struct sample_lock *lock)
{
	const struct looked_thread *thread = thread_at(index, place);

	for (uint32_t i = 0; i < thread->nr_locks; i++)
		if (thread->locks[i].is_inside &&
		    thread->locks[i].semaphore_addr == lock->semaphore_addr)
			return true;
	return false;
}

/*
 * Collect and sort all claims. After fork(2) the child's copy of a lock of multiprocessing says
 * that the child holds it, so a child that waits for it must be inside a `with` statement, too.
 * Returns 0 or -ENOMEM.
 */
static int collect_claims(struct lock_index *index, const struct lock_wait *waits,
			  uint32_t nr_waits)
{
	for (size_t i = 0; i < index->nr_references; i++) {
		const struct reference *reference = &index->by_mutex[i];
		struct claim *claims = array_reserve(index->claims, index->nr_claims + 1,
						     &index->max_claims, sizeof(*claims));
		struct claim claim;
		const struct lock_wait *wait;

		if (!claims)
			return -ENOMEM;
		index->claims = claims;
		if (!find_claim(index, reference, &claim))
			continue;
		wait = lock_wait_find(waits, nr_waits, &claim.thread);
		claim.is_weak = wait && compare_keys(&wait->key, &claim.key) == 0;
		if (!claim.is_weak || reference->lock->kind != SAMPLE_LOCK_PROCESS ||
		    is_inside(index, &claim.thread, reference->lock))
			claims[index->nr_claims++] = claim;
	}
	sort(index->claims, index->nr_claims, sizeof(*index->claims), compare_claims);
	return 0;
}

/* Sum up the claims to each lock. Returns 0 or -ENOMEM. */
static int sum_up(struct lock_index *index)
{
	struct holder *holders = calloc((size_t)index->nr_claims + 1, sizeof(*holders));
	size_t nr = 0;

	if (!holders)
		return -ENOMEM;
	for (uint32_t i = 0; i < index->nr_claims; i++) {
		const struct claim *claim = &index->claims[i];
		struct holder *last = nr ? &holders[nr - 1] : NULL;

		if (!last || compare_keys(&last->key, &claim->key) != 0)
			holders[nr++] = (struct holder){claim->key, claim->thread, claim->is_weak,
							.is_only = true};
		else if (last->is_weak == claim->is_weak &&
			 compare_threads(&last->thread, &claim->thread) != 0)
			last->is_only = false;
	}
	free(index->holders);
	index->holders = holders;
	index->nr_holders = nr;
	return 0;
}

int lock_index_find_holders(struct lock_index *index, struct lock_wait *waits, uint32_t nr_waits)
{
	int err = collect_claims(index, waits, nr_waits);

	if (!err)
		err = sum_up(index);
	for (uint32_t i = 0; !err && i < nr_waits; i++) {
		const struct holder *holder = find(&waits[i].key, index->holders, index->nr_holders,
						   sizeof(*holder), compare_keys);

		waits[i].has_holder =
			holder && holder->is_only && holder->thread.process != NOBODY.process;
		if (waits[i].has_holder)
			waits[i].holder = holder->thread;
	}
	return err;
}
