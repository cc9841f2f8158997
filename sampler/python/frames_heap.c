/* SPDX-License-Identifier: MIT */
#include "sampler/python/frames.h"

#include <errno.h>

#include "sampler/python/frame_walk.h"

/* No callee: the innermost frame. */
#define NO_CALLEE UINT32_MAX

/* The index of the copy of the frame at addr, which is read if there is none yet. */
static int link_of(struct frame_walk *walk, remote_addr addr, uint32_t *ret_index)
{
	struct stack_copy *copy = walk->copy;
	const struct link_copy *link = stack_copy_find_link(copy, addr);
	int err;

	if (!link) {
		err = stack_copy_add_link(copy, walk->codes->memory, &walk->build->offsets, addr);
		if (err == -E2BIG)
			return walk_lost(walk, LOSS_TOO_DEEP);
		if (err)
			return err;
		link = &copy->links[copy->nr_links - 1];
		walk->nr_late++;
	}
	if (!link->valid || copy->nr_steps > MAX_WALK_STEPS)
		return walk_lost(walk, LOSS_LINK);
	*ret_index = (uint32_t)(link - copy->links);
	return 0;
}

/*
 * Who called the frame of a link. One that is not executing (any more) is unwinding, or it
 * returned or was suspended before its copy was taken: a generator then has no caller, and
 * another frame has one still, or is in a list of free ones by the same word. Such a frame
 * is taken for called by whoever called it last, unless it names somebody else than in the
 * copy before. 0: nobody, it is the outermost. Else -EBADMSG as walk_lost(); walk->moved is
 * set.
 */
static int find_caller(struct frame_walk *walk, struct link_copy *link, remote_addr *ret_addr)
{
	struct frame_words words = frame_words(&walk->build->offsets, link->bytes);
	remote_addr known_addr =
		link->driven_executable == words.executable ? link->driver_addr : 0;
	bool executing = words.state == walk->build->traits.executing;

	if (words.previous || executing) {
		link->driver_addr = words.previous;
		link->driven_executable = words.executable;
	}
	*ret_addr = words.previous ? words.previous : known_addr;
	if (executing)
		*ret_addr = words.previous;
	if (executing || (known_addr && *ret_addr == known_addr))
		return 0;
	walk->moved = true;
	return walk_lost(walk, LOSS_LINK);
}

/*
 * Follow the frames from the current one to the outermost, each of which learns whom it
 * calls. *ret_index is the outermost one's; NO_CALLEE if there is no frame at all.
 */
static int follow_back(struct frame_walk *walk, uint32_t *ret_index)
{
	struct stack_copy *copy = walk->copy;
	remote_addr addr = copy->current_frame_addr;

	*ret_index = NO_CALLEE;
	for (size_t nr = 0; addr; nr++) {
		struct link_copy *link;
		uint32_t index = 0;
		int err = link_of(walk, addr, &index);

		if (err)
			return err;
		if (nr > copy->nr_links) /* in a circle */
			return walk_lost(walk, LOSS_LINK);
		link = &copy->links[index];
		link->callee = *ret_index;
		if (*ret_index != NO_CALLEE)
			copy->links[*ret_index].caller = index;
		link->used_tick = walk->clock->tick;
		copy->next_link = link->caller;
		*ret_index = index;
		err = find_caller(walk, link, &addr);
		if (err)
			return err;
	}
	return 0;
}

int frames_walk_heap(struct frame_walk *walk)
{
	struct stack_copy *copy = walk->copy;
	uint32_t index;
	int err;

	frame_list_begin(walk->list);
	walk->nr_late = 0;
	walk->moved = false;
	walk->trimmed = false;
	walk->has_new_code = false;
	copy->next_link = 0;
	err = follow_back(walk, &index);
	while (!err && index != NO_CALLEE) {
		const struct link_copy *link = &copy->links[index];
		struct frame_words words = frame_words(&walk->build->offsets, link->bytes);

		copy->links[index].depth = walk->list->nr_frames;
		err = walk_frame(walk, link->addr, &words);
		index = link->callee;
	}
	if (err == -ENOENT)
		return walk_lost(walk, LOSS_CODE);
	if (walk->nr_late)
		stack_copy_sort_links(copy);
	if (!err)
		walk->has_new_code = walk_has_new_code(walk);
	return err;
}
