/* SPDX-License-Identifier: MIT */
#include "output/profile/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/hash.h"

int process_rows_add(struct process_rows *processes, const struct process_info *info)
{
	struct profile_process row = {
		.pid = info->pid,
		.parent_pid = info->parent_pid,
		.start_ns = info->start_ns,
	};
	struct profile_process *rows =
		array_reserve(processes->rows, processes->nr + 1, &processes->max, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	processes->rows = rows;
	row.name = strdup(info->name ? info->name : "");
	row.command_line = strdup(info->command_line ? info->command_line : "");
	if (!row.name || !row.command_line) {
		free(row.name);
		free(row.command_line);
		return -ENOMEM;
	}
	rows[processes->nr++] = row;
	return 0;
}

const char *process_name(const struct profile_process *process, size_t *ret_length)
{
	const char *name = process->name;
	size_t length = strlen(name);
	const char *slash;

	if (!length) {
		name = process->command_line;
		length = strcspn(name, " ");
		slash = memrchr(name, '/', length);
		if (slash) {
			length -= (size_t)(slash + 1 - name);
			name = slash + 1;
		}
	}
	*ret_length = length;
	return name;
}

void process_rows_cut(struct process_rows *processes, uint32_t nr)
{
	for (uint32_t i = nr; i < processes->nr; i++) {
		free(processes->rows[i].name);
		free(processes->rows[i].command_line);
	}
	if (nr < processes->nr)
		processes->nr = nr;
}

void process_rows_done(struct process_rows *processes)
{
	process_rows_cut(processes, 0);
	free(processes->rows);
	*processes = (struct process_rows){0};
}

/* Finding. */

bool process_is_same(const struct profile_process *a, const struct profile_process *b)
{
	return a->pid == b->pid && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->command_line, b->command_line) == 0;
}

static bool same_name(const struct profile_process *a, const struct profile_process *b)
{
	size_t length, other_length;
	const char *name = process_name(a, &length);
	const char *other = process_name(b, &other_length);

	return length == other_length && memcmp(name, other, length) == 0;
}

static uint64_t hash_process(const struct profile_process *process)
{
	uint64_t hash = hash_add_u64(HASH_BEGIN, (uint64_t)process->pid);

	hash = hash_add_byte(hash_add_string(hash, process->name), '\0');
	return hash_add_string(hash, process->command_line);
}

static uint64_t hash_name(const struct profile_process *process)
{
	size_t length;
	const char *name = process_name(process, &length);

	return hash_add_bytes(HASH_BEGIN, name, length);
}

static uint32_t map_find(const struct pair_map *map, uint64_t hash)
{
	return pair_map_find(map, (uint32_t)(hash >> 32), (uint32_t)hash);
}

/* Enter a row unless there is one with its hash. */
static int map_add(struct pair_map *map, uint64_t hash, uint32_t row)
{
	return map_find(map, hash) == PAIR_MAP_NONE
		       ? pair_map_add(map, (uint32_t)(hash >> 32), (uint32_t)hash, row)
		       : 0;
}

int process_index_add(struct process_index *index, const struct process_rows *processes,
		      uint32_t row)
{
	const struct profile_process *process = &processes->rows[row];
	int err = map_add(&index->of_process, hash_process(process), row);

	return err ? err : map_add(&index->of_name, hash_name(process), row);
}

uint32_t process_index_find(const struct process_index *index, const struct process_rows *processes,
			    const struct profile_process *process)
{
	const uint32_t row = map_find(&index->of_process, hash_process(process));

	return row != PAIR_MAP_NONE && process_is_same(&processes->rows[row], process)
		       ? row
		       : PAIR_MAP_NONE;
}

uint32_t process_index_find_name(const struct process_index *index,
				 const struct process_rows *processes,
				 const struct profile_process *process)
{
	const uint32_t row = map_find(&index->of_name, hash_name(process));

	return row != PAIR_MAP_NONE && same_name(&processes->rows[row], process) ? row
										 : PAIR_MAP_NONE;
}

void process_index_done(struct process_index *index)
{
	pair_map_done(&index->of_process);
	pair_map_done(&index->of_name);
}
