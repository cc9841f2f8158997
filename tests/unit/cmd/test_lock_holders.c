/* SPDX-License-Identifier: MIT */
#include "cmd/dump/lock_holders.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

/* Make thread i of process 0 wait for the one that holders[i] names; -1: for nobody known. */
static struct lock_waits make_waits(const int32_t *holders, uint32_t nr)
{
	struct lock_waits waits = {.waits = calloc(nr, sizeof(*waits.waits)), .nr_waits = nr};

	cr_assert(ne(ptr, waits.waits, NULL));
	for (uint32_t i = 0; i < nr; i++)
		waits.waits[i] = (struct lock_wait){
			.waiter = {0, i},
			.has_holder = holders[i] >= 0,
			.holder = {0, (uint32_t)holders[i]},
		};
	return waits;
}

/* Thread 9 never waits. */
Test(lock_holders, each_circle_is_found_once)
{
	static const struct {
		const char *name;
		uint32_t nr;
		int32_t holders[5];
		uint32_t nr_circles;
		uint32_t firsts[2];
	} cases[] = {
		{"nobody waits", 0, {0}, 0, {0}},
		{"the holder runs", 1, {9}, 0, {0}},
		{"no holder is known", 2, {-1, 0}, 0, {0}},
		{"itself", 1, {0}, 1, {0}},
		{"two", 2, {1, 0}, 1, {0}},
		{"others wait for two", 5, {3, 0, 4, 4, 3}, 1, {3}},
		{"two and two", 5, {2, 3, 0, 1, 0}, 2, {0, 1}},
		{"the last first", 3, {2, 0, 1}, 1, {0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct lock_waits waits = make_waits(cases[i].holders, cases[i].nr);
		const struct lock_wait **circles = NULL;
		uint32_t nr = 99;

		cr_assert(zero(int, lock_waits_find_circles(&waits, &circles, &nr)));
		cr_expect(eq(u32, nr, cases[i].nr_circles), "%s", cases[i].name);
		for (uint32_t k = 0; k < nr && k < 2; k++)
			cr_expect(eq(u32, circles[k]->waiter.thread, cases[i].firsts[k]), "%s",
				  cases[i].name);
		free(circles);
		lock_waits_done(&waits);
	}
}

/* Each thread waits for the next one, the last two for each other: no wait is followed twice. */
Test(lock_holders, a_long_chain_is_followed_once)
{
	enum { NR = 1 << 20 };
	int32_t *holders = calloc(NR, sizeof(*holders));
	const struct lock_wait **circles = NULL;
	struct lock_waits waits;
	uint32_t nr;

	cr_assert(ne(ptr, holders, NULL));
	for (int32_t i = 0; i < NR; i++)
		holders[i] = i + 1 < NR ? i + 1 : i - 1;
	waits = make_waits(holders, NR);
	cr_assert(zero(int, lock_waits_find_circles(&waits, &circles, &nr)));
	cr_expect(eq(u32, nr, 1));
	cr_expect(eq(u32, circles[0]->waiter.thread, NR - 2));
	free(circles);
	free(holders);
	lock_waits_done(&waits);
}
