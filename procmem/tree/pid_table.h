/* SPDX-License-Identifier: MIT */
/* A hash table of processes or threads by their ids, with what process trees know of each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pid_entry {
	pid_t pid; /* 0: a free place */
	pid_t parent_pid;
	int pidfd;	 /* its end is awaited through this; -1: none. Owned by the table's user */
	int wait_status; /* -1: unknown */
	bool is_over;	 /* it has ended, which is reported after the events before that */
	uint64_t end_ns; /* when its main thread ended, before that is judged; else 0 */
};

/* Zeroed, it is empty. */
struct pid_table {
	struct pid_entry
		*entries; /* max_entries, a power of two; iterate over them, but free ones */
	uint32_t nr_entries, max_entries;
};

/* Free the memory. The table is then empty. */
void pid_table_done(struct pid_table *table);

/* Returns the entry of pid, or NULL. It is valid until the table changes. */
struct pid_entry *pid_table_find(const struct pid_table *table, pid_t pid);

/* Add an id above 0 that has no entry. Returns its entry, without a pidfd, or NULL: no memory. */
struct pid_entry *pid_table_add(struct pid_table *table, pid_t pid);

/* Remove an entry of the table. */
void pid_table_remove(struct pid_table *table, const struct pid_entry *entry);
