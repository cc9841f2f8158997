/* SPDX-License-Identifier: MIT */
#include "symbols/jit_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

void jit_index_done(struct jit_index *index)
{
	free(index->entries);
	free(index->spare);
	*index = (struct jit_index){0};
}

/* Adding. */

static bool goes_before(const struct jit_index_entry *a, const struct jit_index_entry *b)
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

/* Where the tree of the entries [first, end) has its root. */
static uint32_t root_of(uint32_t first, uint32_t end)
{
	return first + (end - first) / 2;
}

/* Tell the bounds of each tree within [first, end), which is not empty. As deep as log2 of it. */
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

/* Make one run of the last two. */
static void merge_last(struct jit_index *index, const struct jit_code *codes)
{
	const uint32_t first = index->run_starts[index->nr_runs - 2];
	const uint32_t middle = index->run_starts[index->nr_runs - 1];
	const uint32_t end = index->nr_entries;
	const struct jit_index_entry *entries = index->entries;
	uint32_t nr = 0;

	for (uint32_t a = first, b = middle; a < middle || b < end;) {
		const bool second =
			a == middle || (b < end && goes_before(&entries[b], &entries[a]));
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

static int make_room(struct jit_index *index)
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

int jit_index_add(struct jit_index *index, const struct jit_code *codes, uint32_t code)
{
	const struct jit_code *added = &codes[code];
	int err = make_room(index);

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

static bool has_nothing(const struct jit_index_entry *root, const struct jit_index_query *query)
{
	return root->max_end_addr <= query->start_addr || root->min_from_ns >= query->to_ns ||
	       root->max_to_ns <= query->from_ns;
}

static bool meets(const struct jit_index_entry *entry, const struct jit_index_query *query)
{
	return entry->start_addr < query->end_addr && entry->end_addr > query->start_addr;
}

/* The entries [first, end), as deep as log2 of them. False: nothing more is wanted. */
static bool search_tree(const struct jit_index *index, uint32_t first, uint32_t end,
			struct jit_index_query *query)
{
	while (first < end) {
		const uint32_t root = root_of(first, end);
		const struct jit_index_entry *entry = &index->entries[root];

		if (query->nr_steps == JIT_INDEX_MAX_STEPS)
			return false;
		query->nr_steps++;
		if (has_nothing(entry, query))
			return true;
		if (!search_tree(index, first, root, query))
			return false;
		if (meets(entry, query) && !query->found(query, entry->code))
			return false;
		if (entry->start_addr >= query->end_addr)
			return true;
		first = root + 1;
	}
	return true;
}

void jit_index_search(const struct jit_index *index, struct jit_index_query *query)
{
	bool goes_on = true;

	query->nr_steps = 0;
	/* The newest first: it is what is asked for most. */
	for (uint32_t run = index->nr_runs; goes_on && run > 0; run--)
		goes_on = search_tree(index, index->run_starts[run - 1], run_end(index, run - 1),
				      query);
}
