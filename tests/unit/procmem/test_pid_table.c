/* SPDX-License-Identifier: MIT */
#include "procmem/tree/pid_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_PID = 3000, NR_STEPS = 50000 };

/* Random changes, compared with an array that has a place for each id. */
Test(pid_table, holds_what_was_added_and_not_removed)
{
	static bool is_in[MAX_PID + 1];
	struct pid_table table = {0};
	uint32_t nr = 0;

	srand(1);
	for (int step = 0; step < NR_STEPS; step++) {
		/* The table grows to a part of the ids, then shrinks. */
		const pid_t pid = 1 + rand() % MAX_PID;
		const bool add = rand() % NR_STEPS > step;
		struct pid_entry *entry = pid_table_find(&table, pid);

		cr_assert(eq(int, entry != NULL, is_in[pid]));
		if (add && !entry) {
			entry = pid_table_add(&table, pid);
			cr_assert(entry != NULL);
			cr_assert(eq(int, entry->pidfd, -1));
			entry->pidfd = pid;
		} else if (!add && entry) {
			cr_assert(eq(int, entry->pidfd, pid));
			pid_table_remove(&table, entry);
		}
		nr += add && !is_in[pid];
		nr -= !add && is_in[pid];
		is_in[pid] = add;
		cr_assert(eq(u32, table.nr_entries, nr));
	}
	for (pid_t pid = 1; pid <= MAX_PID; pid++)
		cr_expect(eq(int, pid_table_find(&table, pid) != NULL, is_in[pid]));
	pid_table_done(&table);
}

Test(pid_table, is_empty_when_zeroed)
{
	struct pid_table table = {0};

	cr_expect(pid_table_find(&table, 1) == NULL);
	cr_expect(pid_table_find(&table, 0) == NULL);
	cr_expect(pid_table_find(&table, -1) == NULL);
	pid_table_done(&table);
}
