/* SPDX-License-Identifier: MIT */
#include "symbols/jit_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "symbols/jit_index.h"

struct jit_map {
	struct jit_code *codes; /* owned, with their names */
	uint32_t nr_codes, max_codes;
	uint64_t names_bytes;
	struct jit_index indexes[NR_JIT_SOURCES];
};

struct jit_map *jit_map_create(void)
{
	return calloc(1, sizeof(struct jit_map));
}

void jit_map_destroy(struct jit_map *map)
{
	if (!map)
		return;
	for (uint32_t i = 0; i < map->nr_codes; i++)
		free((char *)map->codes[i].name);
	for (uint32_t i = 0; i < NR_JIT_SOURCES; i++)
		jit_index_done(&map->indexes[i]);
	free(map->codes);
	free(map);
}

/* Adding. */

/* What is added, and what it overlaps. */
struct overlap {
	struct jit_index_query query;
	struct jit_code *codes;
	struct jit_code *added;
};

/* Of two that overlap the earlier one ends where the later one begins. */
static bool end_the_earlier(struct jit_index_query *query, uint32_t code)
{
	const struct overlap *overlap = (struct overlap *)query;
	struct jit_code *other = &overlap->codes[code];
	struct jit_code *added = overlap->added;

	if (other->to_ns <= added->from_ns || other->to_ns <= other->from_ns)
		return true;
	if (other->from_ns <= added->from_ns)
		other->to_ns = added->from_ns;
	else if (other->from_ns < added->to_ns)
		added->to_ns = other->from_ns;
	return true;
}

static int settle_overlaps(struct jit_map *map, struct jit_code *added)
{
	struct overlap overlap = {
		.query = {.start_addr = added->start_addr,
			  .end_addr = added->start_addr + added->nr_bytes,
			  .from_ns = added->from_ns,
			  .to_ns = JIT_MAP_OPEN_NS,
			  .found = end_the_earlier},
		.codes = map->codes,
		.added = added,
	};

	jit_index_search(&map->indexes[added->source], &overlap.query);
	return overlap.query.nr_steps == JIT_INDEX_MAX_STEPS ? -E2BIG : 0;
}

static int make_room(struct jit_map *map, size_t name_bytes)
{
	struct jit_code *codes;

	if (map->nr_codes == JIT_MAP_MAX_CODES ||
	    name_bytes >= JIT_MAP_MAX_NAMES_BYTES - map->names_bytes)
		return -E2BIG;
	codes = array_reserve(map->codes, map->nr_codes + 1, &map->max_codes, sizeof(*codes));
	if (!codes)
		return -ENOMEM;
	map->codes = codes;
	return 0;
}

/* Add it to the codes and the index of its source; its name is the map's from then on. */
static int take_in(struct jit_map *map, const struct jit_code *code)
{
	map->codes[map->nr_codes] = *code;
	return jit_index_add(&map->indexes[code->source], map->codes, map->nr_codes);
}

int jit_map_add(struct jit_map *map, const struct jit_code *code, size_t name_bytes,
		uint32_t *ret_code)
{
	struct jit_code added = *code;
	uint64_t end_addr;
	char *name;
	int err;

	if (!code->nr_bytes || __builtin_add_overflow(code->start_addr, code->nr_bytes, &end_addr))
		return -EBADMSG;
	err = make_room(map, name_bytes);
	if (!err)
		err = settle_overlaps(map, &added);
	if (err)
		return err;
	name = strndup(code->name, name_bytes);
	if (!name)
		return -ENOMEM;
	added.name = name;
	err = take_in(map, &added);
	if (err) {
		free(name);
		return err;
	}
	map->names_bytes += name_bytes + 1;
	if (ret_code)
		*ret_code = map->nr_codes;
	map->nr_codes++;
	return 0;
}

void jit_map_end(struct jit_map *map, const struct jit_code *code, uint64_t to_ns)
{
	if (code->to_ns > to_ns)
		map->codes[code - map->codes].to_ns = to_ns;
}

/* Finding. */

struct look_up {
	struct jit_index_query query;
	const struct jit_code *codes;
	const struct jit_code *found;
};

static bool take_if_there(struct jit_index_query *query, uint32_t code)
{
	struct look_up *look_up = (struct look_up *)query;
	const struct jit_code *candidate = &look_up->codes[code];

	if (query->from_ns < candidate->from_ns || query->from_ns >= candidate->to_ns)
		return true;
	look_up->found = candidate;
	return false;
}

const struct jit_code *jit_map_find_in(const struct jit_map *map, enum jit_source source,
				       remote_addr addr, uint64_t time_ns)
{
	struct look_up look_up = {
		.query = {.start_addr = addr,
			  .end_addr = addr + 1,
			  .from_ns = time_ns,
			  .to_ns = time_ns + 1,
			  .found = take_if_there},
		.codes = map->codes,
	};

	/* The last address and the last time are nobody's: ends are above what they end. */
	if (addr == UINT64_MAX || time_ns == JIT_MAP_OPEN_NS)
		return NULL;
	jit_index_search(&map->indexes[source], &look_up.query);
	return look_up.found;
}

const struct jit_code *jit_map_find(const struct jit_map *map, remote_addr addr, uint64_t time_ns)
{
	const struct jit_code *found = NULL;

	for (uint32_t i = 0; !found && i < NR_JIT_SOURCES; i++)
		found = jit_map_find_in(map, (enum jit_source)i, addr, time_ns);
	return found;
}

/* Listing. */

const struct jit_code *jit_map_codes(const struct jit_map *map, uint32_t *ret_nr_codes)
{
	*ret_nr_codes = map->nr_codes;
	return map->codes;
}

/* qsort_r() of C is not stable: of equal ones the index decides. */
static int compare_codes(const void *a, const void *b, void *codes)
{
	const uint32_t one_index = *(const uint32_t *)a;
	const uint32_t two_index = *(const uint32_t *)b;
	const struct jit_code *one = (const struct jit_code *)codes + one_index;
	const struct jit_code *two = (const struct jit_code *)codes + two_index;

	if (one->start_addr != two->start_addr)
		return one->start_addr < two->start_addr ? -1 : 1;
	if (one->from_ns != two->from_ns)
		return one->from_ns < two->from_ns ? -1 : 1;
	if (one->source != two->source)
		return one->source < two->source ? -1 : 1;
	return one_index < two_index ? -1 : 1;
}

int jit_map_sort(const struct jit_map *map, uint32_t **ret_indexes, uint32_t *ret_nr_indexes)
{
	uint32_t *indexes = calloc(map->nr_codes ? map->nr_codes : 1, sizeof(*indexes));
	uint32_t nr = 0;

	if (!indexes)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr_codes; i++)
		if (map->codes[i].from_ns < map->codes[i].to_ns)
			indexes[nr++] = i;
	qsort_r(indexes, nr, sizeof(*indexes), compare_codes, map->codes);
	*ret_indexes = indexes;
	*ret_nr_indexes = nr;
	return 0;
}

const char *jit_source_text(enum jit_source source)
{
	static const char *const texts[NR_JIT_SOURCES] = {
		[JIT_SOURCE_JITDUMP] = "jitdump",     [JIT_SOURCE_GDB] = "gdb",
		[JIT_SOURCE_LIBUNWIND] = "libunwind", [JIT_SOURCE_PERF_MAP] = "perf map",
		[JIT_SOURCE_TRAMPOLINE] = "memory",   [JIT_SOURCE_EXECUTORS] = "executors",
	};

	return texts[source];
}
