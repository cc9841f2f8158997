/* SPDX-License-Identifier: MIT */
#include "sampler/python/link_path.h"

#include <errno.h>

#include "sampler/python/executable.h"
#include "sampler/python/frame_walk.h"
#include "sampler/python/link_copy.h"

/* So many words on top of a frame's stack are looked at for a generator. */
enum { HELD_MAX_WORDS = 256 };

/*
 * The frame of an extension stays on the C stack as it was when it is not linked any more,
 * and the next one may be made at its place. What a frame of the chunks, or the thread state,
 * leads to is the one of that moment if it is what was there before and is there after.
 */
static bool foreign_stable(struct frame_walk *walk, const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	bool stable = link_agrees(link, offsets) && link->last_valid &&
		      field_u64(link->last, offsets->frame.executable) ==
			      field_u64(link->bytes, offsets->frame.executable) &&
		      field_u64(link->last, offsets->frame.previous) ==
			      field_u64(link->bytes, offsets->frame.previous);

	if (!stable)
		walk->trimmed = true;
	return stable;
}

/*
 * Generators die young and their memory is used again at once, by the next one: with
 * one copy alone every third stack of a program that makes one per microsecond names a
 * wrong one. If it changed, its caller ran in between, and the stack is trimmed to
 * that. One that was suspended at either moment (no `previous`) is the same one still.
 */
static bool link_stable(struct frame_walk *walk, const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	uint64_t previous, previous_again;
	bool stable;

	if (link->foreign)
		return foreign_stable(walk, link);
	if (!link_is_generator(link, offsets))
		return true;
	previous = field_u64(link->bytes, offsets->frame.previous);
	previous_again = field_u64(link->again, offsets->frame.previous);
	stable = link->again_valid &&
		 field_u64(link->bytes, offsets->frame.executable) ==
			 field_u64(link->again, offsets->frame.executable) &&
		 (!previous || !previous_again || previous == previous_again);
	if (!stable)
		walk->trimmed = true;
	return stable;
}

/*
 * Whether the frame of the data stack that a generator hangs on was the same one when
 * the chunks were copied and when all was over. Two chains that take turns use the
 * same memory: a generator may have gone and come again in between.
 */
static bool caller_stable(const struct link_copy *link, const struct walked_frame *below)
{
	return link->below_valid && link->below_addr == below->addr &&
	       (link->below_executable & ~(uint64_t)OBJECT_TAG_MASK) == below->executable;
}

/* The copied bytes of a data-stack frame, as many as *ret_bytes; NULL if it is none. */
static const uint8_t *frame_copy(const struct frame_walk *walk, const struct walked_frame *frame,
				 size_t *ret_bytes)
{
	const struct chunk_copy *chunk = stack_copy_chunk_of(walk->copy, frame->addr);
	size_t offset;

	if (!chunk)
		return NULL;
	offset = frame->addr - chunk->addr;
	if (!chunk_copy_has(walk->copy, chunk, offset, walk->build->offsets.frame.localsplus))
		return NULL;
	*ret_bytes = chunk->done_bytes - offset;
	if (*ret_bytes > frame->code->frame_size_bytes)
		*ret_bytes = frame->code->frame_size_bytes;
	return chunk->bytes + offset;
}

/* What a data-stack frame says of a generator by the words of its own stack. */
enum holding { HOLDS, HOLDS_ANOTHER, HOLDS_NONE, HOLDS_BOTH };

/*
 * Whether a frame held a generator on its stack when the chunks were copied, as the
 * iterator of a loop or an argument of next(), send(), sum() and the like. The copy of
 * the frame is as old as all other frames', which copies of the generator are not. What
 * lies on top counts. Before 3.14 it is not known how far the stack reaches, and there
 * may be another one in words that are left over: then nothing is told.
 */
static enum holding frame_holds(const struct frame_walk *walk, const struct walked_frame *frame,
				const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	bool has_top = offsets->frame.stackpointer != OFFSET_ABSENT;
	enum holding holding = HOLDS_NONE;
	size_t end;
	const uint8_t *bytes = frame_copy(walk, frame, &end);

	if (!bytes)
		return HOLDS_NONE;
	if (has_top && field_u64(bytes, offsets->frame.stackpointer) - frame->addr < end)
		end = field_u64(bytes, offsets->frame.stackpointer) - frame->addr;
	for (int i = 0; i < HELD_MAX_WORDS && end >= frame->code->stack_offset + 8; i++) {
		const struct link_copy *held;
		uint64_t word;

		end -= sizeof(word);
		word = field_u64(bytes, (uint32_t)end) & ~(uint64_t)OBJECT_TAG_MASK;
		held = word ? stack_copy_find_link(walk->copy, word + offsets->generator.iframe)
			    : NULL;
		if (!held || !link_is_generator(held, offsets))
			continue;
		if (has_top)
			return held == link ? HOLDS : HOLDS_ANOTHER;
		if (holding != HOLDS_NONE && (holding == HOLDS) != (held == link))
			return HOLDS_BOTH;
		holding = held == link ? HOLDS : HOLDS_ANOTHER;
	}
	return holding;
}

/* Whether another generator is known to run that one. */
static bool has_generator_below(const struct frame_walk *walk, const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr addr = field_u64(link->bytes, offsets->frame.previous);
	const struct link_copy *below;

	if (!addr)
		addr = link->driver_addr;
	below = addr ? stack_copy_find_link(walk->copy, addr) : NULL;
	return below && link_is_generator(below, offsets);
}

/*
 * Whether a generator's words lead to another frame of the data stack than that, directly or
 * over a shim. A frame of an extension may stand in between, which the stack does not tell.
 */
static bool leads_elsewhere(const struct frame_walk *walk, remote_addr addr,
			    const struct walked_frame *frame)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	const struct link_copy *shim = addr ? stack_copy_find_link(walk->copy, addr) : NULL;

	if (shim && (!shim->valid || shim->foreign))
		return false;
	if (shim)
		addr = field_u64(shim->bytes, offsets->frame.previous);
	return addr != frame->addr && stack_copy_holds(walk->copy, addr);
}

/*
 * Whether the last frame of the list drives a generator although the generator's copies name
 * another one, which drives it in turn with this one. The stack of the last frame tells, which is
 * as old as the frame itself: it holds the generator on top. In memory that generators of
 * several functions use in turn that does not tell which of them it was, nor does it before
 * 3.14, where the words may be left over.
 */
static bool held_by_last(const struct frame_walk *walk, struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	const struct frame_list *list = walk->list;
	const struct walked_frame *last;
	remote_addr addr;

	if (offsets->frame.stackpointer == OFFSET_ABSENT || !list->nr_frames || link->reused ||
	    !link_is_generator(link, offsets))
		return false;
	last = &list->frames[list->nr_frames - 1];
	addr = field_u64(link->bytes, offsets->frame.previous);
	if (!leads_elsewhere(walk, addr ? addr : link->driver_addr, last) &&
	    !(link->again_valid &&
	      leads_elsewhere(walk, field_u64(link->again, offsets->frame.previous), last)))
		return false;
	if (frame_holds(walk, last, link) != HOLDS || has_generator_below(walk, link))
		return false;
	link->held = true;
	return true;
}

/* Whether the copies of a generator before and after the chunks' say that the frame ran it. */
static bool copies_agree(const struct frame_walk *walk, const struct link_copy *link,
			 const struct walked_frame *below, bool through_shim)
{
	const struct py_offsets *offsets = &walk->build->offsets;

	return through_shim || caller_stable(link, below) ||
	       (field_u64(link->bytes, offsets->frame.previous) && link_agrees(link, offsets));
}

/*
 * Whether a generator was run by that frame when the chunks were copied, through a shim
 * or directly. If both copies show it running for the same caller it ran all the time
 * in between, but if it is so fast that it may have stopped and begun again: then it is
 * asked whether the frame held it. So it is if no copy shows it running, which is fast, too.
 * What seems slower may be as fast, in step with the copying; there only that the frame held
 * another one counts against it.
 */
static bool ran_for(struct frame_walk *walk, struct link_copy *link,
		    const struct walked_frame *below, bool through_shim)
{
	enum holding holding = frame_holds(walk, below, link);

	if (holding == HOLDS)
		link->held = true;
	if (link->held && holding == HOLDS_ANOTHER)
		return false;
	if (!link_is_fast(link) && link_seen_running(link, &walk->build->offsets))
		return copies_agree(walk, link, below, through_shim);
	if (holding == HOLDS_ANOTHER || holding == HOLDS_BOTH ||
	    (holding == HOLDS_NONE && link->held))
		return false;
	if (!link->reused && (holding == HOLDS || through_shim))
		return true;
	return caller_stable(link, below);
}

/*
 * Whether the outermost generator of path, or top where it has none (NULL: there is none
 * at all), was run by the frame of the list below when the chunks were copied. If not, or
 * if it cannot be told, walk->trimmed is set.
 */
static bool path_ran(struct frame_walk *walk, struct link_copy *top, const struct link_path *path)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	uint32_t nr_links = path->nr_links;
	const struct walked_frame *below;
	struct link_copy *outermost;
	bool ran;

	while (nr_links > 0 && !link_is_generator(path->links[nr_links - 1], offsets))
		nr_links--;
	outermost = nr_links > 0 ? path->links[nr_links - 1] : top;
	if (!path->nr_below || !outermost || !link_is_generator(outermost, offsets))
		return true;
	below = &walk->list->frames[path->nr_below - 1];
	if (!stack_copy_holds(walk->copy, below->addr))
		return true; /* a generator itself, whose own link was looked at */
	ran = ran_for(walk, outermost, below, nr_links < path->nr_links);
	if (!ran)
		walk->trimmed = true;
	return ran;
}

/*
 * Whether the outermost frame of an extension in path, or top where there is no path, hung
 * on the frame of the list below when the chunks were copied. If not, walk->trimmed is set.
 */
static bool foreign_hung(struct frame_walk *walk, const struct link_copy *top,
			 const struct link_path *path)
{
	const struct link_copy *outermost = path->nr_links ? path->links[path->nr_links - 1] : top;
	const struct walked_frame *below;
	bool hung;

	if (!path->nr_below || !outermost || !outermost->foreign)
		return true;
	below = &walk->list->frames[path->nr_below - 1];
	hung = !stack_copy_holds(walk->copy, below->addr) || caller_stable(outermost, below);
	if (!hung)
		walk->trimmed = true;
	return hung;
}

bool link_in_generator(const struct frame_walk *walk, struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr object_addr = link->addr - offsets->generator.iframe;

	if (link->container == CONTAINER_NOT_ASKED)
		link->container = executable_is_generator(walk->codes, object_addr)
					  ? CONTAINER_GENERATOR
					  : CONTAINER_OTHER;
	return link->container == CONTAINER_GENERATOR;
}

/* Whether all that a path leads over was what it is when the chunks were copied. */
static bool path_held(struct frame_walk *walk, struct link_copy *top, const struct link_path *path)
{
	return foreign_hung(walk, top, path) && path_ran(walk, top, path);
}

/* Leave out what the links lead to, and tell. */
static int left_out(struct frame_walk *walk)
{
	walk->trimmed = true;
	return -ENOENT;
}

int link_is_foreign(struct frame_walk *walk, struct link_copy *link, bool *ret_foreign)
{
	struct frame_words words = frame_words(&walk->build->offsets, link->bytes);
	bool is_shim = words.owner >= walk->build->traits.shim_owner;
	struct code *code = NULL;
	int err = 0;

	/*
	 * It is being made, or is gone: taken for a shim it would be missing from the stack. Copied
	 * as an extension's it is further on.
	 */
	if (!words.executable && !is_shim && words.owner != OWNED_BY_GENERATOR)
		return left_out(walk);
	link->foreign = false;
	if (words.owner != OWNED_BY_GENERATOR &&
	    !executable_is_nothing(walk->codes, words.executable))
		err = executable_get(walk->codes, words.executable, walk->clock, &code);
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err == -EBADMSG || err == -EFAULT)
		err = is_shim ? 0 : -ENOENT;
	if (err)
		return err;
	link->foreign = code;
	link->twice = link->twice || link->foreign;
	*ret_foreign = code;
	return 0;
}

static bool is_bottom(const struct frame_walk *walk, remote_addr addr)
{
	remote_addr base_addr = walk->copy->base_frame_addr;

	return base_addr ? addr == base_addr : !addr;
}

bool link_path_called(struct frame_walk *walk, const struct link_path *path, remote_addr above_addr,
		      uint64_t executable)
{
	for (uint32_t i = 0; i < path->nr_links; i++) {
		const struct link_copy *link = path->links[i];

		if (!link->foreign ||
		    (link->above_valid && link->above_addr == above_addr &&
		     (link->above_executable & ~(uint64_t)OBJECT_TAG_MASK) == executable))
			continue;
		walk->trimmed = true;
		return false;
	}
	return true;
}

/*
 * Whether addr, to which the links lead, is that of a data-stack frame which drove a generator
 * and has returned. In memory that generators of several functions use in turn, and of an
 * extension's frame, that is not known.
 */
static bool has_returned(const struct frame_walk *walk, const struct link_copy *top,
			 const struct link_path *path, remote_addr addr)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	bool generator = false;

	for (uint32_t i = 0; i <= path->nr_links; i++) {
		const struct link_copy *link = i < path->nr_links ? path->links[i] : top;

		if (link && (link->foreign || link->reused))
			return false;
		generator = generator || (link && link_is_generator(link, offsets));
	}
	return generator && offsets->frame.stackpointer != OFFSET_ABSENT &&
	       stack_copy_holds(walk->copy, addr);
}

/*
 * The links end at a frame that is not the last one: those above it are dying, or it has
 * returned since; else it is a link that is not known yet.
 */
static int end_at_frame(struct frame_walk *walk, struct link_copy *top, remote_addr addr,
			struct link_path *path)
{
	walk->copy->nr_steps += MAX_DYING_FRAMES;
	path->nr_below = frame_list_find(walk->list, addr, MAX_DYING_FRAMES + 1);
	if (path->nr_below)
		return path_held(walk, top, path) ? 0 : -ENOENT;
	if (has_returned(walk, top, path, addr))
		return left_out(walk);
	walk->wanted_link_addr = addr;
	return -EAGAIN;
}

/*
 * Put a link on the path if it may be part of it. 0 and *ret_held, whether the last frame of
 * the list holds it; else as link_path_follow().
 */
static int take_link(struct frame_walk *walk, struct link_copy *link, remote_addr above_addr,
		     struct link_path *path, bool *ret_held)
{
	bool foreign = false;
	bool held;
	int err;

	if (!link->valid)
		return -ENOENT;
	if (path->nr_links == PATH_MAX_LINKS)
		return left_out(walk);
	err = link_is_foreign(walk, link, &foreign);
	if (err)
		return err;
	if (foreign && above_addr)
		link->next_above_addr = above_addr;
	held = held_by_last(walk, link);
	if (!held && !link_stable(walk, link))
		return -ENOENT;
	path->links[path->nr_links++] = link;
	*ret_held = held;
	return 0;
}

/* link_path_follow() where not all is told by what is on top; path is empty. */
static int follow_links(struct frame_walk *walk, struct link_copy *top, remote_addr addr,
			remote_addr above_addr, struct link_path *path)
{
	const struct frame_list *list = walk->list;
	remote_addr last_addr = 0; /* of the last link */

	for (;;) {
		struct link_copy *link;
		bool held;
		int err;

		if (walk->copy->nr_steps > MAX_WALK_STEPS)
			return walk_lost(walk, LOSS_LINK);
		if (list->nr_frames && list->frames[list->nr_frames - 1].addr == addr) {
			path->nr_below = list->nr_frames;
			return path_held(walk, top, path) ? 0 : -ENOENT;
		}
		if (is_bottom(walk, addr))
			return !list->nr_frames || last_addr == walk->copy->root_shim_addr
				       ? 0
				       : -ENOENT;
		if (!list->nr_frames && addr == walk->copy->root_shim_addr)
			return 0;
		link = stack_copy_find_link(walk->copy, addr);
		walk->copy->nr_steps++;
		if (!link)
			return end_at_frame(walk, top, addr, path);
		err = take_link(walk, link, above_addr, path, &held);
		if (err)
			return err;
		if (held) {
			path->nr_below = list->nr_frames;
			return 0;
		}
		last_addr = addr;
		addr = field_u64(link->bytes, walk->build->offsets.frame.previous);
		addr = addr ? addr : link->driver_addr;
	}
}

int link_path_follow(struct frame_walk *walk, struct link_copy *top, remote_addr addr,
		     remote_addr above_addr, struct link_path *ret_path)
{
	ret_path->nr_links = 0;
	ret_path->nr_below = 0;
	if (top && held_by_last(walk, top)) {
		ret_path->nr_below = walk->list->nr_frames;
		return 0;
	}
	if (top && link_is_blurred(top)) /* no frame of the chunks speaks for it */
		return left_out(walk);
	if (top && !link_stable(walk, top))
		return -ENOENT;
	return follow_links(walk, top, addr, above_addr, ret_path);
}

int link_path_append(struct frame_walk *walk, const struct link_path *path)
{
	for (uint32_t i = path->nr_links; i > 0; i--) {
		struct link_copy *link = path->links[i - 1];
		struct frame_words words = frame_words(&walk->build->offsets, link->bytes);
		int err;

		link->used_tick = walk->clock->tick;
		if (words.owner != OWNED_BY_GENERATOR && !link->foreign)
			continue;
		err = walk_link(walk, link->addr, &words);
		if (err)
			return err;
	}
	return 0;
}
