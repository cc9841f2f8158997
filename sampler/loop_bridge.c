/* SPDX-License-Identifier: MIT */
#include "sampler/loop_bridge.h"

/* What an entry names is so far from its loop's return address at most: 3.12's is 144 bytes. */
enum { MAX_DISTANCE_BYTES = 1024, WORD_BYTES = 8 };

/* The C frame that an address is in, if it was unwound and not led to; nr_frames: there is none. */
static size_t frame_of(const struct native_stacks *stacks, remote_addr addr)
{
	for (size_t i = 0; i < stacks->nr_frames; i++) {
		const struct unwind_frame *frame = &stacks->frames[i];

		if (addr >= frame->sp && addr < frame->cfa)
			return frame->is_anchor ? stacks->nr_frames : i;
	}
	return stacks->nr_frames;
}

static void learn(struct loop_bridge *bridge, const struct native_stacks *stacks,
		  const struct loop_entry *entries, uint32_t nr_entries)
{
	for (uint32_t i = nr_entries; !bridge->lookup_addr && i-- > 0;) {
		const size_t index =
			entries[i].c_addr ? frame_of(stacks, entries[i].c_addr) : stacks->nr_frames;

		if (index == stacks->nr_frames)
			continue;
		bridge->distance_bytes = (uint32_t)(stacks->frames[index].cfa - entries[i].c_addr);
		if (index)
			bridge->lookup_addr = stacks->frames[index].lookup_addr;
	}
}

/*
 * So far from an entry is the end of its loop: the word below is the return address from which the
 * stack is whole, and has the most frames. What the loop has there besides may look like one,
 * and a word behind that, of 0, like the end of a thread. False: there is none.
 */
static bool find_distance(struct loop_bridge *bridge, struct native_stacks *stacks,
			  remote_addr entry_addr, struct stack_window *window)
{
	const size_t nr_frames = stacks->nr_frames;
	size_t most_frames = 0;

	for (uint32_t bytes = 2 * WORD_BYTES; bytes <= MAX_DISTANCE_BYTES; bytes += WORD_BYTES) {
		const struct native_anchor anchor = {.addr = entry_addr, .cfa = entry_addr + bytes};

		if (native_stacks_go_on(stacks, &anchor, window))
			continue;
		if (stacks->is_whole && stacks->nr_frames > most_frames) {
			most_frames = stacks->nr_frames;
			bridge->distance_bytes = bytes;
		}
		native_stacks_go_back(stacks, nr_frames);
	}
	return most_frames > 0;
}

/* Go on at the loop that an entry names, if that can be. */
static void cross_to(struct loop_bridge *bridge, struct native_stacks *stacks,
		     remote_addr entry_addr, struct stack_window *window)
{
	struct native_anchor anchor = {.addr = entry_addr};

	if (!bridge->distance_bytes && !find_distance(bridge, stacks, entry_addr, window))
		return;
	anchor.cfa = entry_addr + bridge->distance_bytes;
	anchor.lookup_addr = bridge->lookup_addr;
	(void)native_stacks_go_on(stacks, &anchor, window);
}

void loop_bridge_cross(struct loop_bridge *bridge, struct native_stacks *stacks,
		       const struct loop_entry *entries, uint32_t nr_entries,
		       struct stack_window *window)
{
	learn(bridge, stacks, entries, nr_entries);
	for (uint32_t i = nr_entries; !stacks->is_whole && i-- > 0;)
		if (entries[i].c_addr &&
		    entries[i].c_addr >= stacks->frames[stacks->nr_frames - 1].sp)
			cross_to(bridge, stacks, entries[i].c_addr, window);
}
