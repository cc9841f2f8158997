/* SPDX-License-Identifier: MIT */
/*
 * Finds codes by address and time together: rectangles of [start, end) × [from, to). A few
 * sorted arrays of falling length, each of which is also a balanced tree, its middle the root,
 * that knows the bounds of what is below. Adding merges those that have become as long as the
 * one before, so that it takes O(log n) on the average and the end is as good a place as any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit_map.h"

/* Each array is at least twice as long as the next one. */
#define JIT_INDEX_MAX_RUNS 32

/*
 * A search that has looked at so many is given up: of a real program's codes it looks at a few
 * dozen, or at as many as it finds.
 */
#define JIT_INDEX_MAX_STEPS 16384

struct jit_index_entry {
	remote_addr start_addr;
	remote_addr end_addr;
	uint64_t from_ns;
	uint32_t code; /* its index in the map */
	/* Of the tree below, this one included. Ends that came since may be earlier. */
	remote_addr max_end_addr;
	uint64_t min_from_ns;
	uint64_t max_to_ns;
};

/* All zero it is empty. */
struct jit_index {
	struct jit_index_entry *entries; /* owned */
	struct jit_index_entry *spare;	 /* owned; as long, for merging */
	uint32_t nr_entries, max_entries, max_spare;
	uint32_t run_starts[JIT_INDEX_MAX_RUNS]; /* each ends where the next one begins */
	uint32_t nr_runs;
};

/* Free what it holds. */
void jit_index_done(struct jit_index *index);

/*
 * Add code code of codes, which are all that the index knows. 0 or -ENOMEM. Those whose time is
 * empty by now are dropped.
 */
int jit_index_add(struct jit_index *index, const struct jit_code *codes, uint32_t code);

/* What is looked for, and who is called for each that may meet it, in no order. */
struct jit_index_query {
	remote_addr start_addr, end_addr; /* [start_addr, end_addr) */
	uint64_t from_ns, to_ns;	  /* [from_ns, to_ns) */
	/* The address is met, the time has to be looked at. False: nothing more is wanted. */
	bool (*found)(struct jit_index_query *query, uint32_t code);
	uint32_t nr_steps; /* set by the search; JIT_INDEX_MAX_STEPS: it was given up */
};

void jit_index_search(const struct jit_index *index, struct jit_index_query *query);
