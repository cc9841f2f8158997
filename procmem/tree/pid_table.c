/* SPDX-License-Identifier: MIT */
#include "procmem/tree/pid_table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "procmem/hash.h"

enum { MIN_ENTRIES = 64 };

void pid_table_done(struct pid_table *table)
{
	free(table->entries);
	*table = (struct pid_table){0};
}

/* Where the search for pid begins. It goes on to the next places, around the end. */
static uint32_t home(const struct pid_table *table, pid_t pid)
{
	return (uint32_t)((uint64_t)pid * HASH_GOLDEN_RATIO >> 32) & (table->max_entries - 1);
}

/* Returns the place of pid, or the free one where it belongs. */
static struct pid_entry *find_place(const struct pid_table *table, pid_t pid)
{
	uint32_t i = home(table, pid);

	while (table->entries[i].pid && table->entries[i].pid != pid)
		i = (i + 1) & (table->max_entries - 1);
	return &table->entries[i];
}

struct pid_entry *pid_table_find(const struct pid_table *table, pid_t pid)
{
	struct pid_entry *entry;

	if (!table->nr_entries || pid <= 0)
		return NULL;
	entry = find_place(table, pid);
	return entry->pid ? entry : NULL;
}

/* Double the places. Returns false if out of memory. */
static bool grow(struct pid_table *table)
{
	struct pid_table larger = {
		.nr_entries = table->nr_entries,
		.max_entries = table->max_entries ? 2 * table->max_entries : MIN_ENTRIES,
	};

	larger.entries = calloc(larger.max_entries, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	for (uint32_t i = 0; i < table->max_entries; i++)
		if (table->entries[i].pid)
			*find_place(&larger, table->entries[i].pid) = table->entries[i];
	free(table->entries);
	*table = larger;
	return true;
}

struct pid_entry *pid_table_add(struct pid_table *table, pid_t pid)
{
	struct pid_entry *entry;

	if (table->nr_entries + 1 > table->max_entries / 2 && !grow(table))
		return NULL;
	entry = find_place(table, pid);
	*entry = (struct pid_entry){.pid = pid, .pidfd = -1, .wait_status = -1};
	table->nr_entries++;
	return entry;
}

void pid_table_remove(struct pid_table *table, const struct pid_entry *entry)
{
	const uint32_t mask = table->max_entries - 1;
	uint32_t hole = (uint32_t)(entry - table->entries);

	/* Move entries back that were placed behind the hole because its place was taken. */
	for (uint32_t i = (hole + 1) & mask; table->entries[i].pid; i = (i + 1) & mask) {
		const uint32_t distance = (i - home(table, table->entries[i].pid)) & mask;

		if (distance < ((i - hole) & mask))
			continue;
		table->entries[hole] = table->entries[i];
		hole = i;
	}
	table->entries[hole] = (struct pid_entry){.pid = 0};
	table->nr_entries--;
}
