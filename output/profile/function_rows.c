/* SPDX-License-Identifier: MIT */
#include "output/profile/function_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/plumbing.h"
#include "output/text/text.h"
#include "procmem/array.h"

void function_rows_done(struct function_rows *rows)
{
	for (uint32_t i = 0; i < rows->nr; i++)
		free(rows->rows[i].qualname);
	for (uint32_t i = 0; i < rows->paths.nr; i++)
		free((char *)rows->paths.strings[i]);
	free(rows->rows);
	string_table_done(&rows->paths);
	free(rows->of_id.index);
	pair_map_done(&rows->of_name);
	*rows = (struct function_rows){0};
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

/* Two hashes of a function's identity. */
struct function_key {
	uint32_t name, place;
};

static struct function_key function_key(const char *qualname, const char *path, int32_t first_line,
					enum function_kind kind)
{
	return (struct function_key){
		.name = text_hash(qualname) + (uint32_t)kind,
		.place = text_hash(path) + (uint32_t)first_line * 0x9e3779b1u,
	};
}

/*
 * Find the row equal to function; PROFILE_NONE if there is none. If two functions collide in both
 * hashes, only the first is ever found, and the other gets two rows.
 */
static uint32_t function_find(const struct function_rows *rows, const struct function *function)
{
	const struct function_key key = function_key(function->qualname, function->path,
						     function->first_line, function->kind);
	uint32_t index = pair_map_find(&rows->of_name, key.name, key.place);
	const struct profile_function *row;

	if (index == PAIR_MAP_NONE)
		return PROFILE_NONE;
	row = &rows->rows[index];
	if (row->first_line != function->first_line || row->kind != function->kind ||
	    strcmp(row->qualname, function->qualname) != 0 ||
	    strcmp(row->path, function->path) != 0)
		return PROFILE_NONE;
	return index;
}

/* Enter all rows in of_name. Out of memory, some are left out. */
static void name_functions(struct function_rows *rows)
{
	for (; rows->nr_named < rows->nr; rows->nr_named++) {
		const struct profile_function *row = &rows->rows[rows->nr_named];
		const struct function_key key =
			function_key(row->qualname, row->path, row->first_line, row->kind);

		if (pair_map_find(&rows->of_name, key.name, key.place) == PAIR_MAP_NONE)
			(void)pair_map_add(&rows->of_name, key.name, key.place, rows->nr_named);
	}
}

/* Find or make the shared copy of a path. */
static int path_get(struct function_rows *rows, const char *path, const char **ret_path)
{
	const uint32_t nr = rows->paths.nr;
	char *copy = strdup(path);
	uint32_t number;
	int err = copy ? string_table_get(&rows->paths, copy, &number) : -ENOMEM;

	if (err || rows->paths.nr == nr)
		free(copy);
	if (!err)
		*ret_path = rows->paths.strings[number];
	return err;
}

int function_rows_append(struct function_rows *rows, const struct function *function,
			 uint32_t *ret_index)
{
	struct profile_function row = {
		.first_line = function->first_line,
		.kind = function->kind,
		.is_plumbing = plumbing_is(function),
	};
	struct profile_function *functions;
	int err;

	functions = array_reserve(rows->rows, rows->nr + 1, &rows->max, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	rows->rows = functions;
	err = path_get(rows, function->path, &row.path);
	if (err)
		return err;
	row.qualname = strdup(function->qualname);
	if (!row.qualname)
		return -ENOMEM;
	functions[rows->nr] = row;
	*ret_index = rows->nr++;
	return 0;
}

uint32_t function_rows_search(struct function_rows *rows, const struct function *function)
{
	name_functions(rows);
	return function_find(rows, function);
}

int function_rows_add(struct function_rows *rows, const struct function *function,
		      uint32_t *ret_index)
{
	int err = id_map_reserve(&rows->of_id, function->id);

	if (!err)
		err = function_rows_append(rows, function, ret_index);
	if (!err)
		rows->of_id.index[function->id] = *ret_index;
	return err;
}

uint32_t function_rows_find(const struct function_rows *rows, uint32_t id)
{
	return id < rows->of_id.max ? rows->of_id.index[id] : PROFILE_NONE;
}
