/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/loop_entries.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

/*
 * Calls of the loop that may name no frame of the list: one that has not begun yet, and those of
 * frames that could not be read.
 */
enum { MAX_UNNAMED = 16 };

/* Size of a _PyCFrame of any version, at most. */
enum { CFRAME_MAX_BYTES = 24 };

/*
 * Follow the chain of a thread to the outermost _PyCFrame, which is part of the thread state and
 * belongs to no call. places has room for max_places. Returns 0, or an error that ends the dump.
 */
static int read_chain(const struct code_cache *codes, remote_addr thread_addr, size_t max_places,
		      struct loop_place *places, struct loop_chain *ret_chain)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	struct loop_chain chain = {.places = places};
	uint8_t bytes[CFRAME_MAX_BYTES];
	remote_addr addr;
	int err;

	err = remote_memory_read_u64(codes->memory, thread_addr + offsets->thread.cframe, &addr);
	while (!err && addr - thread_addr >= offsets->thread.size && chain.nr < max_places) {
		struct loop_place *place = &places[chain.nr];

		err = remote_memory_read(codes->memory, addr, bytes, sizeof(bytes));
		if (err)
			break;
		*place = (struct loop_place){.addr = addr};
		if (offsets->cframe.current_frame != OFFSET_ABSENT)
			place->current_frame = field_u64(bytes, offsets->cframe.current_frame);
		addr = field_u64(bytes, offsets->cframe.previous);
		chain.nr++;
	}
	chain.is_whole = !err && addr - thread_addr < offsets->thread.size;
	*ret_chain = chain;
	return err == -ESRCH || err == -EPERM ? err : 0;
}

/* 3.11: match calls with the frames that they name, from the innermost call outwards. */
static void place_by_frame(const struct loop_chain *chain, const struct frame_list *list,
			   struct loop_entry *entries)
{
	uint32_t nr_left = list->nr_frames; /* outer frames, not yet assigned to a call */
	unsigned int nr_unnamed = 0;

	for (size_t i = 0; i < chain->nr && nr_unnamed < MAX_UNNAMED; i++) {
		uint32_t index = nr_left;

		while (index > 0 && list->frames[index - 1].addr != chain->places[i].current_frame)
			index--;
		if (!index) {
			nr_unnamed++;
			continue;
		}
		/* Find the outermost frame of that call. */
		nr_left = index - 1;
		while (nr_left > 0 && !entries[nr_left].is_entry)
			nr_left--;
		entries[nr_left].c_addr = chain->places[i].addr;
	}
}

/*
 * Whether the caller of a frame for which the loop is called is an entry frame on the C stack, and
 * so not in the list.
 */
static bool has_entry_frames(const struct py_build *build)
{
	return !build->traits.frames_on_heap && build->offsets.frame.is_entry == OFFSET_ABSENT;
}

bool loop_entries_need_chain(const struct py_build *build)
{
	return !has_entry_frames(build) && build->offsets.cframe.previous != OFFSET_ABSENT;
}

int loop_entries_from_chain(const struct code_cache *codes, const struct loop_chain *chain,
			    const struct frame_list *list, bool is_whole,
			    struct loop_entry **ret_entries)
{
	const bool names_entries = has_entry_frames(codes->build);
	struct loop_entry *entries = calloc(list->nr_frames + 1ull, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		const struct walked_frame *frame = &list->frames[i];

		if (!names_entries) {
			entries[i].is_entry =
				frame->is_entry || codes->build->traits.frames_on_heap;
		} else if (!i || frame->previous != list->frames[i - 1].addr) {
			entries[i].is_entry = true;
			entries[i].c_addr = frame->previous;
		}
	}
	if (chain && codes->build->offsets.cframe.current_frame != OFFSET_ABSENT)
		place_by_frame(chain, list, entries);
	else if (chain && is_whole && chain->is_whole && chain->nr <= list->nr_frames + 1ull &&
		 chain->nr + 1 >= list->nr_frames)
		/*
		 * 3.10: match from the outermost one; the innermost call may not have a frame yet,
		 * or no longer.
		 */
		for (uint32_t i = 0; i < list->nr_frames && i < chain->nr; i++)
			entries[i].c_addr = chain->places[chain->nr - 1 - i].addr;
	*ret_entries = entries;
	return 0;
}

int loop_entries_read(const struct code_cache *codes, remote_addr thread_addr,
		      const struct frame_list *list, bool is_whole, struct loop_entry **ret_entries)
{
	const size_t max_places = (size_t)list->nr_frames + MAX_UNNAMED;
	cleanup_free struct loop_place *places = NULL;
	struct loop_chain chain;
	int err;

	if (!loop_entries_need_chain(codes->build))
		return loop_entries_from_chain(codes, NULL, list, is_whole, ret_entries);
	places = reallocarray(NULL, max_places, sizeof(*places));
	if (!places)
		return -ENOMEM;
	err = read_chain(codes, thread_addr, max_places, places, &chain);
	return err ? err : loop_entries_from_chain(codes, &chain, list, is_whole, ret_entries);
}
