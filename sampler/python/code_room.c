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
	code_copies_done(&code->copies);
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

void code_cache_done(struct code_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->codes.nr_slots; i++)
		code_destroy(cache, cache->codes.slots[i].value);
	executable_cache_destroy(cache->executables);
	addr_map_done(&cache->codes);
	function_table_done(&cache->functions);
}

bool code_cache_relieve(struct code_cache *cache)
{
	bool relieved = executable_cache_relieve(cache->executables);

	if (!cache->tables_full)
		return relieved;
	for (size_t i = 0; i < cache->codes.nr_slots; i++)
		if (cache->codes.slots[i].value)
			code_forget(cache, cache->codes.slots[i].value);
	cache->tables_full = false;
	return true;
}

/* A table of the entries in use. False if out of memory. */
static bool index_used(const struct code_cache *cache, struct addr_map *ret_used)
{
	struct addr_map used = {0};

	for (size_t i = 0; i < cache->codes.nr_slots; i++) {
		struct code *code = cache->codes.slots[i].value;

		if (code && code->in_use && addr_map_put(&used, code->addr, code)) {
			addr_map_done(&used);
			return false;
		}
	}
	*ret_used = used;
	return true;
}

bool code_cache_is_due(const struct code_cache *cache)
{
	return cache->nr_new >= CODES_OF_A_TURN || executable_cache_is_due(cache->executables);
}

/* Drop the code objects that are not in use. */
static void drop_unused(struct code_cache *cache)
{
	struct addr_map used;

	cache->nr_new = 0;
	if (!index_used(cache, &used))
		return;
	for (size_t i = 0; i < cache->codes.nr_slots; i++) {
		struct code *code = cache->codes.slots[i].value;

		if (code && !code->in_use)
			code_destroy(cache, code);
		else if (code)
			code->in_use = false;
	}
	addr_map_done(&cache->codes);
	cache->codes = used;
}

void code_cache_drop_unused(struct code_cache *cache)
{
	executable_cache_drop_unused(cache->executables);
	if (cache->nr_new >= CODES_OF_A_TURN)
		drop_unused(cache);
}
