/* SPDX-License-Identifier: MIT */
#include "cmd/dump/lock_holders.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"

/* Find what each thread waits for, without holders. Returns 0 or -ENOMEM. */
static int find_waits(struct lock_waits *waits, const struct tree *tree,
		      const struct lock_index *index)
{
	for (size_t i = 0; i < tree->nr_processes; i++) {
		for (uint32_t k = 0; k < tree->taken[i]->waits.nr_threads; k++) {
			const struct tree_thread waiter = {i, k};
			struct lock_wait *rows = array_reserve(waits->waits, waits->nr_waits + 1,
							       &waits->max_waits, sizeof(*rows));

			if (!rows)
				return -ENOMEM;
			waits->waits = rows;
			waits->nr_waits +=
				lock_index_find_wait(index, &waiter, &rows[waits->nr_waits]);
		}
	}
	return 0;
}

int lock_waits_find(struct lock_waits *waits, const struct tree *tree)
{
	struct lock_index *index = lock_index_create(tree);
	int err = index ? find_waits(waits, tree, index) : -ENOMEM;

	if (!err)
		err = lock_index_find_holders(index, waits->waits, waits->nr_waits);
	lock_index_destroy(index);
	return err;
}

void lock_waits_done(struct lock_waits *waits)
{
	free(waits->waits);
	*waits = (struct lock_waits){.waits = NULL};
}

const struct lock_wait *lock_waits_get(const struct lock_waits *waits,
				       const struct tree_thread *waiter)
{
	return lock_wait_find(waits->waits, waits->nr_waits, waiter);
}

/* Returns the wait of the thread that holds what a wait is for; NULL if it has none. */
static const struct lock_wait *next_of(const struct lock_waits *waits, const struct lock_wait *wait)
{
	return wait->has_holder ? lock_waits_get(waits, &wait->holder) : NULL;
}

/* Returns the first wait of a circle, by any of them. */
static const struct lock_wait *first_of(const struct lock_waits *waits,
					const struct lock_wait *in_circle)
{
	const struct lock_wait *first = in_circle;

	for (const struct lock_wait *wait = next_of(waits, in_circle); wait != in_circle;
	     wait = next_of(waits, wait))
		if (wait < first)
			first = wait;
	return first;
}

int lock_waits_find_circles(const struct lock_waits *waits, const struct lock_wait ***ret_circles,
			    uint32_t *ret_nr_circles)
{
	const uint32_t nr = waits->nr_waits;
	/* By wait: the number of the walk that came to it, from 1. */
	cleanup_free uint32_t *walks = calloc((size_t)nr + 1, sizeof(*walks));
	cleanup_free const struct lock_wait **circles =
		calloc((size_t)nr + 1, sizeof(struct lock_wait *));
	uint32_t nr_circles = 0;

	if (!walks || !circles)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct lock_wait *wait = &waits->waits[i];

		for (; wait && !walks[wait - waits->waits]; wait = next_of(waits, wait))
			walks[wait - waits->waits] = i + 1;
		if (wait && walks[wait - waits->waits] == i + 1)
			circles[nr_circles++] = first_of(waits, wait);
	}
	*ret_circles = take_ptr(circles);
	*ret_nr_circles = nr_circles;
	return 0;
}
