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

/* An entry frame is so far from its loop's return address at most: 3.12's is 144 bytes. */
enum { MAX_DISTANCE_BYTES = 1024, WORD_BYTES = 8 };

/* Whether the stack is whole from the first return address above an entry frame on. */
static bool find_distance(struct native_stacks *natives, struct stack_window *window,
			  remote_addr entry_addr, uint32_t *ret_distance_bytes)
{
	const size_t nr_frames = natives->nr_frames;

	for (uint32_t bytes = 2 * WORD_BYTES; bytes <= MAX_DISTANCE_BYTES; bytes += WORD_BYTES) {
		const struct native_anchor anchor = {.addr = entry_addr, .cfa = entry_addr + bytes};
		bool is_whole;

		if (native_stacks_go_on(natives, &anchor, window))
			continue;
		is_whole = natives->is_whole;
		native_stacks_go_back(natives, nr_frames);
		*ret_distance_bytes = bytes;
		return is_whole;
	}
	return false;
}

void stack_bridge_learn(struct native_stacks *natives, struct stack_window *window,
			struct loop_places *places, const struct code_cache *codes,
			const struct frame_list *late)
{
	if (places->entry_distance_bytes || natives->is_whole)
		return;
	for (uint32_t i = late->nr_frames; i-- > 0;) {
		const remote_addr addr = late->frames[i].previous;
		remote_addr previous;
		uint32_t distance_bytes;

		if (!entry_frame_read(codes, window, addr, &previous))
			continue;
		if (find_distance(natives, window, addr, &distance_bytes))
			loop_places_vote_entry(places, distance_bytes);
		return;
	}
}

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
	for (uint32_t i = 0; places->entry_distance_bytes && !natives->is_whole && i < MAX_HOLES;
	     i++)
		if (!cross_one(natives, window, places, codes))
			return;
}
