/* SPDX-License-Identifier: MIT */
#include "output/function_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/array.h"

void function_rows_done(struct function_rows *rows)
{
	for (uint32_t i = 0; i < rows->nr; i++) {
		free(rows->rows[i].qualname);
		free(rows->rows[i].path);
	}
	free(rows->rows);
	free(rows->of_id.index);
	pair_map_done(&rows->of_name);
	*rows = (struct function_rows){0};
}

static uint32_t id_map_find(const struct id_map *map, uint32_t id)
{
	return id < map->max ? map->index[id] : PROFILE_NONE;
}

static int id_map_reserve(struct id_map *map, uint32_t id)
{
	uint32_t max = map->max;
	uint32_t *index;

	if (id == PROFILE_NONE)
		return -ENOMEM;
	index = array_reserve(map->index, id + 1, &map->max, sizeof(*index));
	if (!index)
		return -ENOMEM;
	map->index = index;
	for (; max < map->max; max++)
		index[max] = PROFILE_NONE;
	return 0;
}

static void id_map_clear(struct id_map *map)
{
	for (uint32_t i = 0; i < map->max; i++)
		map->index[i] = PROFILE_NONE;
}

/* FNV-1a, 32 bits. */
static uint32_t hash_string(const char *string)
{
	uint32_t hash = 0x811c9dc5u;

	for (; *string; string++)
		hash = (hash ^ (unsigned char)*string) * 0x01000193u;
	return hash;
}

/*
 * The function of that name and path that another sampler has shown; PROFILE_NONE if
 * there is none. (Of two whose hashes are both equal only the first is ever found: the
 * other has two rows then.)
 */
static uint32_t function_find(const struct function_rows *rows, const struct function *function)
{
	uint32_t index;

	if (!rows->ids_changed)
		return PROFILE_NONE;
	index = pair_map_find(&rows->of_name, hash_string(function->qualname),
			      hash_string(function->path));
	if (index == PAIR_MAP_NONE || strcmp(rows->rows[index].qualname, function->qualname) != 0 ||
	    strcmp(rows->rows[index].path, function->path) != 0)
		return PROFILE_NONE;
	return index;
}

/* Have every function so far be found by its name. Out of memory, some are not. */
static void name_functions(struct function_rows *rows)
{
	for (; rows->nr_named < rows->nr; rows->nr_named++) {
		const struct profile_function *function = &rows->rows[rows->nr_named];
		uint32_t name = hash_string(function->qualname);
		uint32_t path = hash_string(function->path);

		if (pair_map_find(&rows->of_name, name, path) == PAIR_MAP_NONE)
			(void)pair_map_add(&rows->of_name, name, path, rows->nr_named);
	}
}

int function_rows_append(struct function_rows *rows, const char *qualname, const char *path,
			 uint32_t *ret_index)
{
	struct profile_function *functions;
	struct profile_function copy;

	functions = array_reserve(rows->rows, rows->nr + 1, &rows->max, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	rows->rows = functions;
	copy = (struct profile_function){.qualname = strdup(qualname), .path = strdup(path)};
	if (!copy.qualname || !copy.path) {
		free(copy.qualname);
		free(copy.path);
		return -ENOMEM;
	}
	functions[rows->nr] = copy;
	*ret_index = rows->nr++;
	return 0;
}

static int function_add(struct function_rows *rows, const struct function *function,
			uint32_t *ret_index)
{
	int err = id_map_reserve(&rows->of_id, function->id);

	if (!err)
		err = function_rows_append(rows, function->qualname, function->path, ret_index);
	if (!err)
		rows->of_id.index[function->id] = *ret_index;
	return err;
}

int function_rows_get(struct function_rows *rows, const struct function *function,
		      uint32_t *ret_index)
{
	uint32_t index = function_find(rows, function);
	int err;

	if (index == PROFILE_NONE)
		return function_add(rows, function, ret_index);
	err = id_map_reserve(&rows->of_id, function->id);
	if (err)
		return err;
	rows->of_id.index[function->id] = index;
	*ret_index = index;
	return 0;
}

uint32_t function_rows_find(const struct function_rows *rows, uint32_t id)
{
	return id_map_find(&rows->of_id, id);
}

void function_rows_change_ids(struct function_rows *rows)
{
	name_functions(rows);
	id_map_clear(&rows->of_id);
	rows->ids_changed = true;
}
