/* SPDX-License-Identifier: MIT */
#include "sampler/python/executable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/executable_kinds.h"

/* What 3.12 calls the code object of its shims (_Py_InterpreterTrampoline, Python/specialize.c). */
#define TRAMPOLINE_NAME "<interpreter trampoline>"

struct executable {
	struct code code; /* what the walk gets of it; code objects have their own */
	enum executable_kind kind;
	bool known;		       /* kind and reads are what was found */
	bool used;		       /* it is among those to be read again */
	uint64_t checked_tick;	       /* when the reads gave the same last */
	uint64_t loaded_tick;	       /* when they were made */
	struct executable_reads reads; /* all that the description is made of */
};

struct executable_cache {
	struct addr_map by_addr;
	struct executable **entries; /* owned */
	struct executable **used;    /* asked for since read_tick, as much room; owned */
	size_t nr_entries, nr_used;
	size_t nr_new;		     /* entries since unused ones were dropped last */
	size_t nr_bytes;	     /* that the reads of all take */
	bool full;		     /* something was refused for that */
	uint64_t read_tick;	     /* when those used before were read again */
	struct remote_range *ranges; /* of that; owned */
	size_t max_ranges;
	uint8_t *bytes; /* owned */
	size_t max_bytes;
};

/* Forget what was read of an object: it is none until it is read anew. */
static void forget(struct executable_cache *cache, struct executable *executable)
{
	cache->nr_bytes -= executable->reads.max_bytes;
	executable_reads_done(&executable->reads);
	executable->known = false;
	executable->code.nr_loads++;
}

void executable_cache_destroy(struct executable_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->nr_entries; i++) {
		executable_reads_done(&cache->entries[i]->reads);
		free(cache->entries[i]);
	}
	free(cache->entries);
	free(cache->used);
	free(cache->ranges);
	free(cache->bytes);
	addr_map_done(&cache->by_addr);
	free(cache);
}

bool executable_cache_relieve(struct executable_cache *cache)
{
	if (!cache || !cache->full)
		return false;
	for (size_t i = 0; i < cache->nr_entries; i++)
		if (cache->entries[i]->known)
			forget(cache, cache->entries[i]);
	cache->full = false;
	return true;
}

static bool is_kept(const struct executable *executable)
{
	return executable->used || executable->code.in_use;
}

/* A table of the entries that are kept. False if out of memory. */
static bool index_kept(const struct executable_cache *cache, struct addr_map *ret_kept)
{
	struct addr_map kept = {0};

	for (size_t i = 0; i < cache->nr_entries; i++) {
		struct executable *executable = cache->entries[i];

		if (is_kept(executable) &&
		    addr_map_put(&kept, executable->code.addr, executable) != 0) {
			addr_map_done(&kept);
			return false;
		}
	}
	*ret_kept = kept;
	return true;
}

bool executable_cache_is_due(const struct executable_cache *cache)
{
	return cache && cache->nr_new >= EXECUTABLES_OF_A_TURN;
}

void executable_cache_drop_unused(struct executable_cache *cache)
{
	struct addr_map kept;
	size_t nr = 0;

	if (!cache || !index_kept(cache, &kept))
		return;
	cache->nr_new = 0;
	for (size_t i = 0; i < cache->nr_entries; i++) {
		struct executable *executable = cache->entries[i];

		if (is_kept(executable)) {
			executable->code.in_use = false;
			cache->entries[nr++] = executable;
			continue;
		}
		if (executable->known)
			forget(cache, executable);
		free(executable);
	}
	cache->nr_entries = nr;
	addr_map_done(&cache->by_addr);
	cache->by_addr = kept;
}

/* The cache of codes, made when it is first asked for. NULL: out of memory. */
static struct executable_cache *cache_of(struct code_cache *codes)
{
	if (!codes->executables)
		codes->executables = calloc(1, sizeof(*codes->executables));
	return codes->executables;
}

static bool grow(struct executable ***entries, size_t max_entries)
{
	struct executable **larger =
		reallocarray(*entries, max_entries, sizeof(struct executable *));

	if (larger)
		*entries = larger;
	return larger;
}

/* A new entry. 0; -E2BIG, -ENOMEM. */
static int make_entry(struct executable_cache *cache, remote_addr addr,
		      struct executable **ret_executable)
{
	size_t nr = cache->nr_entries;
	struct executable *executable;

	if (nr == MAX_EXECUTABLES)
		return -E2BIG;
	if ((nr & (nr - 1)) == 0 &&
	    (!grow(&cache->entries, nr ? nr * 2 : 1) || !grow(&cache->used, nr ? nr * 2 : 1)))
		return -ENOMEM;
	executable = calloc(1, sizeof(*executable));
	if (!executable)
		return -ENOMEM;
	executable->code.addr = addr;
	executable->code.foreign = true;
	if (addr_map_put(&cache->by_addr, addr, executable) != 0) {
		free(executable);
		return -ENOMEM;
	}
	cache->entries[cache->nr_entries++] = executable;
	*ret_executable = executable;
	return 0;
}

/* Room for so many pieces with so many bytes to be read again. 0 or -ENOMEM. */
static int make_room(struct executable_cache *cache, size_t nr_ranges, size_t nr_bytes)
{
	if (nr_ranges > cache->max_ranges) {
		free(cache->ranges);
		cache->max_ranges = 0;
		cache->ranges = calloc(nr_ranges, sizeof(*cache->ranges));
		if (!cache->ranges)
			return -ENOMEM;
		cache->max_ranges = nr_ranges;
	}
	if (nr_bytes > cache->max_bytes) {
		free(cache->bytes);
		cache->max_bytes = 0;
		cache->bytes = malloc(nr_bytes);
		if (!cache->bytes)
			return -ENOMEM;
		cache->max_bytes = nr_bytes;
	}
	return 0;
}

/* Read what was read of some objects once more, in one call. Those that changed are forgotten. */
static int read_again(struct executable_cache *cache, struct remote_memory *memory,
		      struct executable *const *executables, size_t nr, uint64_t tick)
{
	size_t nr_ranges = 0;
	size_t nr_bytes = 0;
	int err;

	for (size_t i = 0; i < nr; i++) {
		nr_ranges += executables[i]->reads.nr_reads;
		nr_bytes += executables[i]->reads.nr_bytes;
	}
	err = make_room(cache, nr_ranges, nr_bytes);
	if (err || !nr_ranges)
		return err;
	nr_ranges = 0;
	nr_bytes = 0;
	for (size_t i = 0; i < nr; i++) {
		executable_reads_again(&executables[i]->reads, cache->ranges + nr_ranges,
				       cache->bytes + nr_bytes);
		nr_ranges += executables[i]->reads.nr_reads;
		nr_bytes += executables[i]->reads.nr_bytes;
	}
	err = remote_memory_read_ranges(memory, cache->ranges, nr_ranges);
	nr_ranges = 0;
	for (size_t i = 0; !err && i < nr; i++) {
		const struct remote_range *ranges = cache->ranges + nr_ranges;

		nr_ranges += executables[i]->reads.nr_reads;
		if (executable_reads_same(&executables[i]->reads, ranges))
			executables[i]->checked_tick = tick;
		else
			forget(cache, executables[i]);
	}
	return err;
}

/* Read again what frames ran at the last tick, and begin the list of this one's. */
static int begin_tick(struct executable_cache *cache, struct remote_memory *memory, uint64_t tick)
{
	size_t nr_used = cache->nr_used;

	cache->read_tick = tick;
	cache->nr_used = 0;
	for (size_t i = 0; i < nr_used; i++)
		cache->used[i]->used = false;
	return read_again(cache, memory, cache->used, nr_used, tick);
}

/* The function that a text says. 0; -E2BIG, -ENOMEM. */
static int take_text(struct code_cache *codes, struct executable *executable,
		     const struct executable_text *text)
{
	executable->kind = text->kind;
	if (text->kind != EXECUTABLE_NAMED)
		return 0;
	if (codes->functions.nr_bytes >= FUNCTIONS_MAX_BYTES)
		return -E2BIG;
	executable->code.function = function_table_get(&codes->functions, FUNCTION_PYTHON,
						       text->qualname, text->path, text->line);
	return executable->code.function ? 0 : -ENOMEM;
}

/* Remember for good that frames with an executable are not shown: it is never freed. */
static void add_nothing(struct code_cache *codes, remote_addr addr)
{
	codes->nothings[codes->nr_nothings++ % MAX_NOTHINGS] = addr;
}

/* Read the object anew. On any error the entry says nothing. */
static int load(struct code_cache *codes, struct executable *executable, uint64_t tick)
{
	struct executable_cache *cache = codes->executables;
	struct executable_text text = {0};
	int err;

	executable_reads_begin(&executable->reads, codes->memory);
	err = executable_describe(&executable->reads, codes->build, executable->code.addr, &text);
	if (!err)
		err = take_text(codes, executable, &text);
	executable_text_done(&text);
	cache->nr_bytes += executable->reads.max_bytes;
	if (!err && cache->nr_bytes > EXECUTABLES_MAX_BYTES) {
		cache->full = true;
		err = -E2BIG;
	}
	executable->known = true;
	executable->loaded_tick = tick;
	if (!err)
		err = read_again(cache, codes->memory, &executable, 1, tick);
	if (!err && !executable->known)
		return -EAGAIN;
	if (err)
		forget(cache, executable);
	return err;
}

/* A code object's own entry, or NULL for that of 3.12's shims. */
static int get_code(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		    struct code **ret_code)
{
	int err = code_cache_get(codes, addr, clock, ret_code);

	if (!err && strcmp((*ret_code)->function->qualname, TRAMPOLINE_NAME) == 0) {
		add_nothing(codes, addr);
		*ret_code = NULL;
	}
	return err;
}

int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code)
{
	struct executable_cache *cache = cache_of(codes);
	struct executable *executable;
	int err = 0;

	if (!cache)
		return -ENOMEM;
	executable = addr_map_get(&cache->by_addr, addr);
	if (!executable) {
		err = make_entry(cache, addr, &executable);
		cache->nr_new += !err;
	}
	if (!err && clock->tick > cache->read_tick)
		err = begin_tick(cache, codes->memory, clock->tick);
	if (err)
		return err;
	if (!executable->used)
		cache->used[cache->nr_used++] = executable;
	executable->used = true;
	executable->code.in_use = true;
	if (executable->known && executable->checked_tick < clock->tick)
		err = read_again(cache, codes->memory, &executable, 1, clock->tick);
	if (!err && !executable->known)
		err = load(codes, executable, clock->tick);
	if (err)
		return err;
	/* Only what was read before the frame was, and is the same by now, was what it ran. */
	if (clock->is_past && executable->kind == EXECUTABLE_NAMED &&
	    executable->loaded_tick >= (clock->past_tick ? clock->past_tick : clock->tick))
		return -EAGAIN;
	if (executable->kind == EXECUTABLE_CODE)
		return get_code(codes, addr, clock, ret_code);
	/* Another one may have taken its place. */
	if (executable->kind == EXECUTABLE_NOTHING && !executable_is_nothing(codes, addr))
		add_nothing(codes, addr);
	*ret_code = executable->kind == EXECUTABLE_NAMED ? &executable->code : NULL;
	return 0;
}
