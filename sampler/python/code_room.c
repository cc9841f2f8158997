/* SPDX-License-Identifier: MIT */
/* The memory of the code cache: where it begins and ends, and what it gives back meanwhile. */
#include <stdlib.h>

#include "sampler/python/code.h"
#include "sampler/python/executable.h"

void code_cache_init(struct code_cache *cache, struct remote_memory *memory,
		     const struct py_build *build)
{
	*cache = (struct code_cache){
		.memory = memory,
		.build = build,
		.functions.max_bytes = FUNCTIONS_MAX_BYTES,
	};
}

void code_forget(struct code_cache *cache, struct code *code)
{
	cache->table_bytes -= code->table_bytes;
	cache->nr_cleared += code->function != NULL;
	if (code->identity && cache->teller)
		cache->teller->forget(cache->teller, code->addr);
	free(code->linetable);
	free(code->lines);
	free(code->copies.starts);
	*code = (struct code){
		.addr = code->addr,
		.nr_loads = code->nr_loads + 1,
		.in_use = code->in_use,
	};
}

static void code_destroy(struct code_cache *cache, struct code *code)
{
	if (!code)
		return;
	code_forget(cache, code);
	free(code);
}

/* Destroy all entries of a table. */
static void destroy_all(struct code_cache *cache, struct addr_map *map)
{
	for (size_t i = 0; i < map->nr_slots; i++)
		code_destroy(cache, map->slots[i].value);
	addr_map_done(map);
}

void code_cache_done(struct code_cache *cache)
{
	if (!cache)
		return;
	destroy_all(cache, &cache->codes);
	destroy_all(cache, &cache->executables);
	function_table_done(&cache->functions);
}

bool code_cache_relieve(struct code_cache *cache)
{
	if (!cache->tables_full)
		return false;
	for (size_t i = 0; i < cache->codes.nr_slots; i++)
		if (cache->codes.slots[i].value)
			code_forget(cache, cache->codes.slots[i].value);
	cache->tables_full = false;
	return true;
}

bool code_cache_is_due(const struct code_cache *cache)
{
	return cache->nr_new >= CODES_OF_A_TURN ||
	       cache->nr_new_executables >= EXECUTABLES_OF_A_TURN;
}

/* Drop the entries of a table that are not in use. */
static void drop_unused(struct code_cache *cache, struct addr_map *map)
{
	struct addr_map used = {0};

	for (size_t i = 0; i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && code->in_use && addr_map_put(&used, code->addr, code)) {
			addr_map_done(&used);
			return;
		}
	}
	for (size_t i = 0; i < map->nr_slots; i++) {
		struct code *code = map->slots[i].value;

		if (code && !code->in_use)
			code_destroy(cache, code);
		else if (code)
			code->in_use = false;
	}
	addr_map_done(map);
	*map = used;
}

void code_cache_drop_unused(struct code_cache *cache)
{
	drop_unused(cache, &cache->executables);
	cache->nr_new_executables = 0;
	if (cache->nr_new < CODES_OF_A_TURN)
		return;
	drop_unused(cache, &cache->codes);
	cache->nr_new = 0;
}
