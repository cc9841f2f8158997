/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/*
 * The index finds codes by address and time, as rectangles [start, end) × [from, to). It is a few
 * sorted arrays (runs) of decreasing length. Each run is also a balanced tree, with its middle as
 * the root, whose entries know the bounds of what is below them. A new code is appended as a run
 * of its own; runs that have grown as long as the one before are merged, so adding takes
 * amortised O(log n), in any order.
 */

/* Limit on runs: each is at least twice as long as the next one. */
#define JIT_INDEX_MAX_RUNS 32

struct jit_index_entry {
	remote_addr start_addr;
	remote_addr end_addr;
	uint64_t from_ns;
	uint32_t code; /* index in the map */
	/* Bounds of the subtree, this entry included. Codes may have ended earlier since. */
	remote_addr max_end_addr;
	uint64_t min_from_ns;
	uint64_t max_to_ns;
};

/* All zero: empty. */
struct jit_index {
	struct jit_index_entry *entries; /* owned */
	struct jit_index_entry *spare;	 /* owned; as long, for merging */
	uint32_t nr_entries, max_entries, max_spare;
	uint32_t run_starts[JIT_INDEX_MAX_RUNS]; /* each ends where the next one starts */
	uint32_t nr_runs;
};

/* A search, with a callback for each candidate, in no particular order. */
struct jit_index_query {
	remote_addr start_addr, end_addr; /* [start_addr, end_addr) */
	uint64_t from_ns, to_ns;	  /* [from_ns, to_ns) */
	/*
	 * Called for a code whose address range overlaps; the callback checks the time. Returns
	 * false to stop.
	 */
	bool (*found)(struct jit_index_query *query, uint32_t code);
	uint32_t nr_steps; /* set by the search; JIT_MAP_MAX_STEPS: given up */
};

static void jit_index_done(struct jit_index *index)
{
	free(index->entries);
	free(index->spare);
	*index = (struct jit_index){0};
}

/* Adding. */

static bool precedes(const struct jit_index_entry *a, const struct jit_index_entry *b)
{
	if (a->start_addr != b->start_addr)
		return a->start_addr < b->start_addr;
	return a->from_ns < b->from_ns;
}

static uint32_t run_end(const struct jit_index *index, uint32_t run)
{
	return run + 1 < index->nr_runs ? index->run_starts[run + 1] : index->nr_entries;
}

static uint32_t run_length(const struct jit_index *index, uint32_t run)
{
	return run_end(index, run) - index->run_starts[run];
}

static void widen(struct jit_index_entry *entry, const struct jit_index_entry *below)
{
	if (below->max_end_addr > entry->max_end_addr)
		entry->max_end_addr = below->max_end_addr;
	if (below->min_from_ns < entry->min_from_ns)
		entry->min_from_ns = below->min_from_ns;
	if (below->max_to_ns > entry->max_to_ns)
		entry->max_to_ns = below->max_to_ns;
}

/* The root of the tree of the entries [first, end). */
static uint32_t root_of(uint32_t first, uint32_t end)
{
	return first + (end - first) / 2;
}

/*
 * Set the bounds of each subtree of [first, end), which is not empty. Recursion depth is log2 of
 * its length.
 */
static void set_bounds(struct jit_index_entry *entries, const struct jit_code *codes,
		       uint32_t first, uint32_t end)
{
	const uint32_t root = root_of(first, end);
	struct jit_index_entry *entry = &entries[root];

	entry->max_end_addr = entry->end_addr;
	entry->min_from_ns = entry->from_ns;
	entry->max_to_ns = codes[entry->code].to_ns;
	if (first < root) {
		set_bounds(entries, codes, first, root);
		widen(entry, &entries[root_of(first, root)]);
	}
	if (root + 1 < end) {
		set_bounds(entries, codes, root + 1, end);
		widen(entry, &entries[root_of(root + 1, end)]);
	}
}

static bool is_empty(const struct jit_code *codes, const struct jit_index_entry *entry)
{
	return codes[entry->code].to_ns <= entry->from_ns;
}

/* Merge the last two runs. Codes whose time range is empty are dropped. */
static void merge_last(struct jit_index *index, const struct jit_code *codes)
{
	const uint32_t first = index->run_starts[index->nr_runs - 2];
	const uint32_t middle = index->run_starts[index->nr_runs - 1];
	const uint32_t end = index->nr_entries;
	const struct jit_index_entry *entries = index->entries;
	uint32_t nr = 0;

	for (uint32_t a = first, b = middle; a < middle || b < end;) {
		const bool second = a == middle || (b < end && precedes(&entries[b], &entries[a]));
		const struct jit_index_entry *entry = &entries[second ? b++ : a++];

		if (!is_empty(codes, entry))
			index->spare[nr++] = *entry;
	}
	memcpy(&index->entries[first], index->spare, nr * sizeof(*index->spare));
	index->nr_entries = first + nr;
	index->nr_runs -= nr ? 1 : 2;
	if (nr)
		set_bounds(index->entries, codes, first, first + nr);
}

static int reserve_entry(struct jit_index *index)
{
	const uint32_t needed = index->nr_entries + 1;
	struct jit_index_entry *entries =
		array_reserve(index->entries, needed, &index->max_entries, sizeof(*entries));
	struct jit_index_entry *spare;

	if (!entries)
		return -ENOMEM;
	index->entries = entries;
	spare = array_reserve(index->spare, needed, &index->max_spare, sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	index->spare = spare;
	return 0;
}

/* Add codes[code]. codes holds all that the index refers to. Returns 0 or -ENOMEM. */
static int jit_index_add(struct jit_index *index, const struct jit_code *codes, uint32_t code)
{
	const struct jit_code *added = &codes[code];
	int err = reserve_entry(index);

	if (err)
		return err;
	index->run_starts[index->nr_runs++] = index->nr_entries;
	index->entries[index->nr_entries++] =
		(struct jit_index_entry){.start_addr = added->start_addr,
					 .end_addr = added->start_addr + added->nr_bytes,
					 .from_ns = added->from_ns,
					 .code = code};
	set_bounds(index->entries, codes, index->nr_entries - 1, index->nr_entries);
	while (index->nr_runs > 1 &&
	       run_length(index, index->nr_runs - 2) < 2 * run_length(index, index->nr_runs - 1))
		merge_last(index, codes);
	return 0;
}

/* Searching. */

static bool cannot_match(const struct jit_index_entry *root, const struct jit_index_query *query)
{
	return root->max_end_addr <= query->start_addr || root->min_from_ns >= query->to_ns ||
	       root->max_to_ns <= query->from_ns;
}

static bool overlaps(const struct jit_index_entry *entry, const struct jit_index_query *query)
{
	return entry->start_addr < query->end_addr && entry->end_addr > query->start_addr;
}

/*
 * Search the entries [first, end). Recursion depth is log2 of their number. Returns false to
 * stop.
 */
static bool search_tree(const struct jit_index *index, uint32_t first, uint32_t end,
			struct jit_index_query *query)
{
	while (first < end) {
		const uint32_t root = root_of(first, end);
		const struct jit_index_entry *entry = &index->entries[root];

		if (query->nr_steps == JIT_MAP_MAX_STEPS)
			return false;
		query->nr_steps++;
		if (cannot_match(entry, query))
			return true;
		if (!search_tree(index, first, root, query))
			return false;
		if (overlaps(entry, query) && !query->found(query, entry->code))
			return false;
		if (entry->start_addr >= query->end_addr)
			return true;
		first = root + 1;
	}
	return true;
}

static void jit_index_search(const struct jit_index *index, struct jit_index_query *query)
{
	bool is_unfinished = true;

	query->nr_steps = 0;
	/* Newest run first: it is queried most. */
	for (uint32_t run = index->nr_runs; is_unfinished && run > 0; run--)
		is_unfinished = search_tree(index, index->run_starts[run - 1],
					    run_end(index, run - 1), query);
}

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

/* The search for the codes that a new one overlaps. */
struct overlap {
	struct jit_index_query query;
	struct jit_code *codes;
	struct jit_code *added;
};

/* Of two codes that overlap, end the earlier one where the later one starts. */
static bool end_earlier(struct jit_index_query *query, uint32_t code)
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

static int end_overlapped(struct jit_map *map, struct jit_code *added)
{
	struct overlap overlap = {
		.query = {.start_addr = added->start_addr,
			  .end_addr = added->start_addr + added->nr_bytes,
			  .from_ns = added->from_ns,
			  .to_ns = JIT_MAP_OPEN_NS,
			  .found = end_earlier},
		.codes = map->codes,
		.added = added,
	};

	jit_index_search(&map->indexes[added->source], &overlap.query);
	return overlap.query.nr_steps == JIT_MAP_MAX_STEPS ? -E2BIG : 0;
}

static int reserve_code(struct jit_map *map, size_t name_bytes)
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

/*
 * Append the code to the codes and to the index of its source. Takes ownership of its name on
 * success.
 */
static int append_code(struct jit_map *map, const struct jit_code *code)
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
	err = reserve_code(map, name_bytes);
	if (!err)
		err = end_overlapped(map, &added);
	if (err)
		return err;
	name = strndup(code->name, name_bytes);
	if (!name)
		return -ENOMEM;
	added.name = name;
	err = append_code(map, &added);
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

/* Look-up. */

struct look_up {
	struct jit_index_query query;
	const struct jit_code *codes;
	const struct jit_code *found;
};

static bool match_code(struct jit_index_query *query, uint32_t code)
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
			  .found = match_code},
		.codes = map->codes,
	};

	/* No code covers the last address or the last time, as ends are exclusive. */
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

/* qsort_r() is not stable, so ties are resolved by index. */
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
