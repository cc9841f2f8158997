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

/* Who called a frame last, by the copies before this one; 0 if it was another function's. */
static remote_addr last_caller(const struct link_copy *link, const struct frame_words *now)
{
	return link->driven_executable == now->executable ? link->driver_addr : 0;
}

/*
 * The words of a frame as it was before the thread state was copied. A caller that stays is
 * not copied then: it was as it has been in every tick. All zero: not known.
 */
static struct frame_words words_before(const struct frame_walk *walk, const struct link_copy *link,
				       const struct frame_words *now)
{
	struct frame_words before = {0};

	if (link->twice && link->again_valid)
		return frame_words(&walk->build->offsets, link->again);
	if (link->twice || !link->called_tick)
		return before;
	before = *now;
	before.previous = last_caller(link, now);
	return before;
}

/* What the two copies of a frame tell. */
struct judged_frame {
	remote_addr caller_addr; /* 0: nobody, it is the outermost */
	bool firm;		 /* the same one called it before and after the thread state */
	bool executing;		 /* all the time */
	bool doubtful;		 /* unless its caller was executing all the time, that was not it */
};

/*
 * Judge a frame by its copies, and learn from them who calls it. One that is not executing
 * (any more) is unwinding, or it returned or was suspended: a generator then has no caller,
 * and another frame has one still, or is in a list of free ones by the same word. It is
 * taken for called by whoever called it before. is_still: the thread stands where it stood at
 * the last walk; else a caller that was seen to execute in neither copy proves nothing.
 */
static struct judged_frame judge(const struct frame_walk *walk, struct link_copy *link,
				 bool is_still)
{
	const uint8_t executing = walk->build->traits.executing;
	struct frame_words now = frame_words(&walk->build->offsets, link->bytes);
	struct frame_words before = words_before(walk, link, &now);
	bool same = now.executable && before.executable == now.executable;
	remote_addr known_addr =
		same && before.previous ? before.previous : last_caller(link, &now);
	bool executing_once = now.state == executing || before.state == executing;
	struct judged_frame judged = {.caller_addr = now.previous};

	if (now.state != executing && !now.previous)
		judged.caller_addr = known_addr;
	judged.executing = same && now.state == executing && before.state == executing;
	judged.doubtful = now.state != executing &&
			  !(same && before.previous && before.previous == judged.caller_addr);
	judged.firm = same && (!link->twice || executing_once || is_still) &&
		      (before.previous == judged.caller_addr ||
		       (!before.previous && !now.previous && known_addr));
	if (!now.previous && now.state != executing)
		return judged;
	if (link->driver_addr != now.previous || link->driven_executable != now.executable)
		link->changed_tick = walk->clock->tick;
	link->driver_addr = now.previous;
	link->driven_executable = now.executable;
	return judged;
}

/* Whether the innermost frame is where it was at the last walk; learns where it is. */
static bool stands_still(const struct frame_walk *walk, const struct link_copy *link)
{
	struct stack_copy *copy = walk->copy;
	int32_t lasti = frame_words(&walk->build->offsets, link->bytes).lasti;
	bool still = copy->walked_frame_addr == link->addr && copy->walked_lasti == lasti;

	copy->walked_frame_addr = link->addr;
	copy->walked_lasti = lasti;
	return still;
}

/* The frames of a thread, from the innermost one on. */
struct back_path {
	uint32_t outermost; /* index of the last one; NO_CALLEE: there is none at all */
	uint32_t cut;	    /* of the last one that is not firm, but for the innermost */
};

/* Append the frame at addr to a path; its callee learns who called it. */
static int path_append(struct frame_walk *walk, struct back_path *path, remote_addr addr)
{
	struct stack_copy *copy = walk->copy;
	uint32_t index = 0;
	int err = link_of(walk, addr, &index);

	if (err)
		return err;
	copy->links[index].callee = path->outermost;
	copy->links[index].used_tick = walk->clock->tick;
	if (path->outermost != NO_CALLEE) {
		copy->links[path->outermost].caller = index;
		copy->links[index].called_tick = walk->clock->tick;
	}
	copy->next_link = copy->links[index].caller;
	path->outermost = index;
	return 0;
}

/*
 * Follow the frames from the one at addr to the outermost. -EAGAIN: it cannot be told who
 * called one of them. Else errors of frames_walk_heap().
 */
static int follow_back(struct frame_walk *walk, remote_addr addr, struct back_path *ret_path)
{
	struct back_path path = {NO_CALLEE, NO_CALLEE};
	struct judged_frame judged = {.caller_addr = addr};
	bool is_still = false;

	for (size_t nr = 0; judged.caller_addr; nr++) {
		bool doubtful = judged.doubtful;
		int err = path_append(walk, &path, judged.caller_addr);

		if (err)
			return err;
		if (nr > walk->copy->nr_links) /* in a circle */
			return walk_lost(walk, LOSS_LINK);
		if (nr == 0)
			is_still = stands_still(walk, &walk->copy->links[path.outermost]);
		judged = judge(walk, &walk->copy->links[path.outermost], is_still);
		if (doubtful && !judged.executing)
			return -EAGAIN;
		if (nr && !judged.firm)
			path.cut = path.outermost;
	}
	*ret_path = path;
	return judged.doubtful ? -EAGAIN : 0;
}

/*
 * The deepest frame below max_depth that was executing, called by the same one, all the
 * time; NULL: none. It was part of the stack when the thread state was copied, whatever it
 * called.
 */
static const struct link_copy *deepest_firm(const struct frame_walk *walk, uint32_t max_depth)
{
	const struct stack_copy *copy = walk->copy;
	const uint8_t executing = walk->build->traits.executing;
	const struct link_copy *deepest = NULL;

	for (size_t i = 0; i < copy->nr_links; i++) {
		const struct link_copy *link = &copy->links[i];
		struct frame_words now = frame_words(&walk->build->offsets, link->bytes);
		struct frame_words before = words_before(walk, link, &now);

		if (link->valid && now.state == executing && before.state == executing &&
		    before.executable == now.executable && before.previous == now.previous &&
		    link->depth < max_depth && (!deepest || link->depth > deepest->depth))
			deepest = link;
	}
	return deepest;
}

/* Follow the frames from the current one, or at least from one that is known to be there. */
static int find_path(struct frame_walk *walk, struct back_path *ret_path)
{
	enum { MAX_TRIES = 16 };
	int err = follow_back(walk, walk->copy->current_frame_addr, ret_path);
	uint32_t depth = UINT32_MAX;

	for (int i = 0; err == -EAGAIN && i < MAX_TRIES; i++) {
		const struct link_copy *link = deepest_firm(walk, depth);

		walk->trimmed = true;
		if (!link)
			break;
		depth = link->depth;
		err = follow_back(walk, link->addr, ret_path);
	}
	return err == -EAGAIN ? walk_lost(walk, LOSS_LINK) : err;
}

int frames_walk_heap(struct frame_walk *walk)
{
	struct stack_copy *copy = walk->copy;
	struct back_path path = {NO_CALLEE, NO_CALLEE};
	bool above = false; /* what cannot be told is left out with all above it */
	int err;

	frame_list_begin(walk->list);
	walk->nr_late = 0;
	walk->trimmed = false;
	walk->has_new_code = false;
	copy->next_link = 0;
	err = find_path(walk, &path);
	for (uint32_t i = err ? NO_CALLEE : path.outermost, depth = 0; !err && i != NO_CALLEE;
	     i = copy->links[i].callee) {
		struct link_copy *link = &copy->links[i];
		struct frame_words words = frame_words(&walk->build->offsets, link->bytes);

		link->depth = depth++;
		above = above || i == path.cut;
		if (!above)
			err = walk_frame(walk, link->addr, &words);
	}
	walk->trimmed = walk->trimmed || above;
	if (err == -ENOENT)
		return walk_lost(walk, LOSS_CODE);
	if (walk->nr_late)
		stack_copy_sort_frames(copy);
	if (!err)
		walk->has_new_code = walk_has_new_code(walk);
	return err;
}
