/* SPDX-License-Identifier: MIT */
#include "sampler/stack_bridge.h"

#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/dumped_entry.h"
#include "sampler/python/loop_entries.h"

/* Holes in one stack: recursions through a kernel have one a call. */
enum { MAX_HOLES = 256 };

/*
 * Entries behind a hole that are tried: an older call may have left one in what a C function
 * has not used of its frame; its return address leads into nothing then.
 */
enum { MAX_CANDIDATES = 8 };

/* An entry is so far from its loop's return address at most: 3.12's is 144 bytes. */
enum { MAX_DISTANCE_BYTES = 1024, WORD_BYTES = 8 };

/*
 * So far from an entry is the end of its loop: the word below is the return address from which the
 * stack is whole, and has the most frames. What the loop has there besides may look like one,
 * and a word behind that, of 0, like the end of a thread. False: there is none.
 */
static bool find_distance(const struct dumped_stack *stack, remote_addr entry_addr,
			  uint32_t *ret_distance_bytes)
{
	struct native_stacks *natives = stack->natives;
	const size_t nr_frames = natives->nr_frames;
	size_t most_frames = 0;

	for (uint32_t bytes = 2 * WORD_BYTES; bytes <= MAX_DISTANCE_BYTES; bytes += WORD_BYTES) {
		const struct native_anchor anchor = {.addr = entry_addr, .cfa = entry_addr + bytes};

		if (native_stacks_go_on(natives, &anchor, stack->window))
			continue;
		if (natives->is_whole && natives->nr_frames > most_frames) {
			most_frames = natives->nr_frames;
			*ret_distance_bytes = bytes;
		}
		native_stacks_go_back(natives, nr_frames);
	}
	return most_frames > 0;
}

void stack_bridge_learn(const struct dumped_stack *stack)
{
	cleanup_free struct loop_entry *entries = NULL;

	if (stack->places->entry_distance_bytes || stack->natives->is_whole ||
	    loop_entries_read(stack->codes, stack->thread_addr, stack->late, true, &entries))
		return;
	for (uint32_t i = stack->late->nr_frames; i-- > 0;) {
		struct dumped_entry entry;
		uint32_t distance_bytes;

		if (!entries[i].c_addr || !dumped_entry_read(stack, entries[i].c_addr, &entry))
			continue;
		if (find_distance(stack, entries[i].c_addr, &distance_bytes))
			loop_places_vote_entry(stack->places, distance_bytes);
		return;
	}
}

static bool cross_one(const struct dumped_stack *stack)
{
	const struct native_stacks *natives = stack->natives;
	remote_addr addr = natives->frames[natives->nr_frames - 1].sp;

	for (uint32_t i = 0; i < MAX_CANDIDATES; i++) {
		remote_addr entry_addr;
		struct native_anchor anchor;

		if (!dumped_entry_find(stack, addr, &entry_addr))
			return false;
		anchor = (struct native_anchor){
			.addr = entry_addr,
			.cfa = entry_addr + stack->places->entry_distance_bytes,
			.lookup_addr = stack->places->lookup_addr,
		};
		if (!native_stacks_go_on(stack->natives, &anchor, stack->window))
			return true;
		addr = entry_addr + 1;
	}
	return false;
}

void stack_bridge_cross(const struct dumped_stack *stack)
{
	if (!stack->places->entry_distance_bytes)
		return;
	for (uint32_t i = 0; !stack->natives->is_whole && i < MAX_HOLES; i++)
		if (!cross_one(stack))
			return;
}
