/* SPDX-License-Identifier: MIT */
#include "sampler/python/frame_top.h"

#include <errno.h>

#include "sampler/python/frame_walk.h"
#include "sampler/python/link_copy.h"
#include "sampler/python/link_path.h"

/*
 * Without shims (3.11) a generator that is all there is of a stack has no previous
 * either, like one that is suspended; but it is the current frame.
 */
static bool is_lone_generator(const struct frame_walk *walk, const struct link_copy *link)
{
	return walk->build->traits.shim_owner == UINT8_MAX && !walk->list->nr_frames &&
	       walk->copy->current_frame_addr == link->addr;
}

/*
 * Whether a link of which the words tell that it runs may hang directly on a frame of the
 * list. One that executes has no generator directly on top; one that does not is not inside
 * of an extension, where that is told. An extension may say that its frame is a generator's.
 */
static bool may_hang_on(const struct frame_walk *walk, struct link_copy *link,
			const struct frame_words *words, const struct walked_frame *below)
{
	bool executing = below->stacktop == STACKTOP_EXECUTING;

	if (walk->build->traits.leaf_rule != LEAF_BY_STACKTOP)
		return true;
	if (link->foreign)
		return executing;
	if (words->is_entry || !executing)
		return true;
	return link->addr == walk->copy->current_frame_addr &&
	       link_agrees(link, &walk->build->offsets) && !link_in_generator(walk, link);
}

/* What is on top of the frames of the list. */
struct top {
	struct link_copy *link; /* NULL: nothing */
	struct link_path path;
};

/*
 * Look whether a link that runs is on top of one of the frames from the nr_least-th on: it
 * replaces *top if that is not as deep. 0; -EAGAIN if a link must be copied first; -EBADMSG
 * after too many steps.
 */
static int consider_top(struct frame_walk *walk, struct link_copy *link, uint32_t nr_least,
			struct top *top)
{
	const struct frame_list *list = walk->list;
	struct frame_words words = frame_words(&walk->build->offsets, link->bytes);
	struct link_path path;
	int err = link_path_follow(walk, link, words.previous, 0, &path);

	if (err || path.nr_below < nr_least)
		return err == -ENOENT ? 0 : err;
	if (path.nr_links == 0 && path.nr_below > 0 &&
	    !may_hang_on(walk, link, &words, &list->frames[path.nr_below - 1]))
		return 0;
	if (!top->link || path.nr_below > top->path.nr_below ||
	    (path.nr_below == top->path.nr_below && path.nr_links > top->path.nr_links))
		*top = (struct top){link, path};
	return 0;
}

/*
 * The frame of an extension that is the current one, which alone tells that it is linked:
 * the frame itself stays as it was. 0 and *ret_link, NULL if there is none; errors of
 * link_is_foreign().
 */
static int find_top_foreign(struct frame_walk *walk, struct link_copy **ret_link)
{
	struct stack_copy *copy = walk->copy;
	struct link_copy *link = copy->nr_links && !stack_copy_holds(copy, copy->current_frame_addr)
					 ? stack_copy_find_link(copy, copy->current_frame_addr)
					 : NULL;
	struct link_path path;
	bool foreign;
	int err;

	*ret_link = NULL;
	if (!link || !link->valid || link->used_tick == walk->clock->tick)
		return 0;
	err = link_is_foreign(walk, link, &foreign);
	if (!err && foreign)
		*ret_link = link;
	/* One that is not shown may stand above a generator that is not known yet. */
	if (!err && !foreign && !link_is_generator(link, &walk->build->offsets))
		err = link_path_follow(walk, NULL,
				       frame_words(&walk->build->offsets, link->bytes).previous, 0,
				       &path);
	return err == -ENOENT ? 0 : err;
}

/*
 * The generator, or frame of an extension, that runs on top of one of the frames from the
 * nr_least-th on, the deepest if one runs on another. 0 and *ret_top; -EAGAIN if a link must
 * be copied first; -EBADMSG as walk_lost().
 */
static int find_top(struct frame_walk *walk, uint32_t nr_least, struct top *ret_top)
{
	struct stack_copy *copy = walk->copy;
	struct link_copy *foreign;
	int err = 0;

	ret_top->link = NULL;
	for (size_t i = 0; !err && i < copy->nr_links; i++) {
		struct link_copy *link = &copy->links[i];
		struct frame_words words = frame_words(&walk->build->offsets, link->bytes);

		if (link_is_generator(link, &walk->build->offsets) &&
		    link->used_tick != walk->clock->tick && words.executable &&
		    (words.previous || is_lone_generator(walk, link)))
			err = consider_top(walk, link, nr_least, ret_top);
	}
	if (!err)
		err = find_top_foreign(walk, &foreign);
	if (!err && foreign)
		err = consider_top(walk, foreign, nr_least, ret_top);
	return err;
}

int frame_top_walk(struct frame_walk *walk, uint32_t nr_least, bool *ret_found)
{
	struct top top;
	struct frame_words words;
	bool trimmed = walk->trimmed;
	int err = find_top(walk, nr_least, &top);

	*ret_found = false;
	if (err || !top.link)
		return err;
	walk->trimmed = trimmed; /* those that were refused are not it */
	words = frame_words(&walk->build->offsets, top.link->bytes);
	walk->list->nr_frames = top.path.nr_below;
	err = link_path_append(walk, &top.path);
	if (!err)
		err = walk_link(walk, top.link->addr, &words);
	if (err == -ENOENT)
		return walk_lost(walk, LOSS_LINK);
	top.link->used_tick = walk->clock->tick;
	*ret_found = true;
	return err;
}

bool frame_top_unknown(const struct frame_walk *walk)
{
	struct stack_copy *copy = walk->copy;

	if (!copy->current_frame_addr || copy->current_frame_addr == copy->base_frame_addr)
		return false;
	for (size_t i = 0; i < copy->nr_chunks; i++)
		if (copy->current_frame_addr - copy->chunks[i].addr < copy->chunks[i].size_bytes)
			return false;
	return !stack_copy_find_link(copy, copy->current_frame_addr);
}
