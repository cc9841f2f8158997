/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/function_table.h"

#include <stdlib.h>
#include <string.h>

#include "procmem/hash.h"

enum { FIRST_NR_SLOTS = 256 };

struct function_entry {
	struct function function;
	uint64_t hash;
	char text[]; /* qualname, NUL, path, NUL */
};

static size_t slot_find(const struct function_table *table, uint64_t hash,
			const struct function *wanted)
{
	size_t mask = table->nr_slots - 1;
	size_t i = (size_t)hash & mask;

	for (; table->slots[i]; i = (i + 1) & mask) {
		const struct function *seen = &table->slots[i]->function;

		if (table->slots[i]->hash == hash && seen->kind == wanted->kind &&
		    seen->first_line == wanted->first_line &&
		    strcmp(seen->qualname, wanted->qualname) == 0 &&
		    strcmp(seen->path, wanted->path) == 0)
			break;
	}
	return i;
}

static bool table_grow(struct function_table *table)
{
	struct function_table larger = *table;

	larger.nr_slots = table->nr_slots ? table->nr_slots * 2 : FIRST_NR_SLOTS;
	larger.slots = calloc(larger.nr_slots, sizeof(struct function_entry *));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < table->nr_slots; i++)
		if (table->slots[i])
			larger.slots[slot_find(&larger, table->slots[i]->hash,
					       &table->slots[i]->function)] = table->slots[i];
	free(table->slots);
	*table = larger;
	return true;
}

static struct function_entry *entry_create(const struct function *wanted, uint64_t hash,
					   uint32_t id)
{
	size_t name_bytes = strlen(wanted->qualname) + 1;
	size_t path_bytes = strlen(wanted->path) + 1;
	struct function_entry *entry = malloc(sizeof(*entry) + name_bytes + path_bytes);

	if (!entry)
		return NULL;
	memcpy(entry->text, wanted->qualname, name_bytes);
	memcpy(entry->text + name_bytes, wanted->path, path_bytes);
	entry->hash = hash;
	entry->function = (struct function){
		.id = id,
		.kind = wanted->kind,
		.first_line = wanted->first_line,
		.qualname = entry->text,
		.path = entry->text + name_bytes,
	};
	return entry;
}

bool function_is_overflow(const struct function *function)
{
	return !function->path[0] && strcmp(function->qualname, FUNCTION_TABLE_OVERFLOW) == 0;
}

/* Whether there is no room for another function of a kind. */
static bool is_full(const struct function_table *table, enum function_kind kind)
{
	return table->max_bytes &&
	       (table->nr_bytes >= table->max_bytes ||
		(kind == FUNCTION_TASK && table->nr_task_bytes >= table->max_bytes / 4));
}

const struct function *function_table_get(struct function_table *table, enum function_kind kind,
					  const char *qualname, const char *path,
					  int32_t first_line)
{
	struct function wanted = {
		.kind = kind,
		.qualname = qualname,
		.path = path,
		.first_line = first_line,
	};
	const bool is_task = kind == FUNCTION_TASK;
	const char *others = is_task ? FUNCTION_TABLE_OTHER_TASKS : FUNCTION_TABLE_OVERFLOW;
	const size_t bytes = sizeof(struct function_entry) + strlen(qualname) + strlen(path) + 2;
	uint64_t hash = hash_add_bytes(HASH_BEGIN, qualname, strlen(qualname) + 1);
	size_t i;

	hash = hash_add_bytes(hash, path, strlen(path) + 1);
	hash = hash_add_bytes(hash, &first_line, sizeof(first_line));
	if (table->nr_functions + 1u > table->nr_slots / 4 * 3 && !table_grow(table))
		return NULL;
	i = slot_find(table, hash, &wanted);
	if (table->slots[i])
		return &table->slots[i]->function;
	if (is_full(table, kind) && (path[0] || strcmp(qualname, others) != 0))
		return function_table_get(table, is_task ? FUNCTION_TASK : FUNCTION_PYTHON, others,
					  "", 0);
	table->slots[i] = entry_create(&wanted, hash, table->nr_functions);
	if (!table->slots[i])
		return NULL;
	table->nr_functions++;
	table->nr_bytes += bytes;
	table->nr_task_bytes += is_task ? bytes : 0;
	return &table->slots[i]->function;
}

void function_table_done(struct function_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->nr_slots; i++)
		free(table->slots[i]);
	free(table->slots);
	*table = (struct function_table){0};
}
