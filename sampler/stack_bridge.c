/* SPDX-License-Identifier: MIT */
#include "sampler/stack_bridge.h"

#include "sampler/entry_frame.h"

/* Holes in one stack: recursions through a kernel have one a call. */
enum { MAX_HOLES = 256 };

/*
 * Entry frames behind a hole that are tried: an older call may have left one in what a C function
 * has not used of its frame; its return address leads into nothing then.
 */
enum { MAX_CANDIDATES = 8 };

static bool cross_one(struct native_stacks *natives, struct stack_window *window,
		      const struct loop_places *places, const struct code_cache *codes)
{
	remote_addr addr = natives->frames[natives->nr_frames - 1].sp;

	for (uint32_t i = 0; i < MAX_CANDIDATES; i++) {
		remote_addr entry_addr;
		struct native_anchor anchor;

		if (!entry_frame_find(codes, window, addr, &entry_addr))
			return false;
		anchor = (struct native_anchor){
			.addr = entry_addr,
			.cfa = entry_addr + places->entry_distance_bytes,
			.lookup_addr = places->lookup_addr,
		};
		if (!native_stacks_go_on(natives, &anchor, window))
			return true;
		addr = entry_addr + 1;
	}
	return false;
}

void stack_bridge_cross(struct native_stacks *natives, struct stack_window *window,
			const struct loop_places *places, const struct code_cache *codes)
{
	const bool knows_loops = places->entry_distance_bytes && places->lookup_addr;

	for (uint32_t i = 0; knows_loops && !natives->is_whole && i < MAX_HOLES; i++)
		if (!cross_one(natives, window, places, codes))
			return;
}
