/* SPDX-License-Identifier: MIT */
#include "output/tables/string_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "procmem/array.h"
#include "procmem/hash.h"

#define MIN_SLOTS 64

void string_table_done(struct string_table *table)
{
	if (!table)
		return;
	free(table->strings);
	free(table->slots);
	*table = (struct string_table){0};
}

static uint64_t hash_of(const char *string, uint64_t seed)
{
	const uint64_t hash = hash_add_string(HASH_BEGIN ^ seed, string);

	return hash ^ hash >> 32;
}

/* Returns the slot of a string, or the free slot where it belongs. */
static uint32_t *slot_of(const struct string_table *table, const char *string)
{
	size_t mask = table->max_slots - 1;
	size_t i = hash_of(string, table->seed) & mask;

	while (table->slots[i] && strcmp(table->strings[table->slots[i] - 1], string) != 0)
		i = (i + 1) & mask;
	return &table->slots[i];
}

/* Make room for one more string. */
static int slots_reserve(struct string_table *table)
{
	struct string_table larger = *table;

	if ((size_t)table->nr + 1 <= table->max_slots / 2)
		return 0;
	larger.max_slots = table->max_slots ? table->max_slots * 2 : MIN_SLOTS;
	if (!table->max_slots)
		(void)getrandom(&larger.seed, sizeof(larger.seed), GRND_NONBLOCK);
	larger.slots = calloc(larger.max_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->nr; i++)
		*slot_of(&larger, table->strings[i]) = i + 1;
	free(table->slots);
	*table = larger;
	return 0;
}

int string_table_get(struct string_table *table, const char *string, uint32_t *ret_number)
{
	int err = slots_reserve(table);
	const char **strings;
	uint32_t *slot;

	if (err)
		return err;
	slot = slot_of(table, string);
	if (!*slot) {
		strings =
			array_reserve(table->strings, table->nr + 1, &table->max, sizeof(*strings));
		if (!strings)
			return -ENOMEM;
		table->strings = strings;
		strings[table->nr++] = string;
		*slot = table->nr;
	}
	*ret_number = *slot - 1;
	return 0;
}
