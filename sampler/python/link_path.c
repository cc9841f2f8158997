/* SPDX-License-Identifier: MIT */
#include "sampler/python/link_path.h"

#include <errno.h>

#include "sampler/python/frame_walk.h"

/* So many words on top of a frame's stack are looked at for a generator. */
enum { HELD_MAX_WORDS = 256 };

/*
 * Generators die young and their memory is used again at once, by the next one: with
 * one copy alone every third stack of a program that makes one per microsecond names a
 * wrong one. If it changed, its caller ran in between, and the stack is trimmed to
 * that. One that was suspended at either moment (no `previous`) is the same one still.
 */
bool link_stable(struct frame_walk *walk, const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	uint64_t previous, previous_again;
	bool stable;

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
static bool caller_stable(struct frame_walk *walk, const struct link_copy *link,
			  const struct walked_frame *below)
{
	bool stable = link->below_valid && link->below_addr == below->addr &&
		      (link->below_executable & ~(uint64_t)OBJECT_TAG_MASK) == below->executable;

	if (!stable)
		walk->trimmed = true;
	return stable;
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
	if (offset + walk->build->offsets.frame.localsplus > chunk->done_bytes)
		return NULL;
	*ret_bytes = chunk->done_bytes - offset;
	if (*ret_bytes > frame->code->frame_size_bytes)
		*ret_bytes = frame->code->frame_size_bytes;
	return chunk->bytes + offset;
}

/* What a data-stack frame says of a generator, in the words of its locals and its stack. */
enum holding { HOLDS, HOLDS_ANOTHER, HOLDS_NONE };

/*
 * Whether a frame held a generator when the chunks were copied: who runs one has it on
 * its stack, as the iterator of a loop or as an argument of next(), send(), sum() and
 * the like; unless it is inside of another object, as a task's coroutine. The copy of
 * the frame is as old as all other frames', which copies of the generator are not.
 * Where it is known how far the stack reaches (3.14+), what lies on top counts.
 */
static enum holding frame_holds(const struct frame_walk *walk, const struct walked_frame *frame,
				const struct link_copy *link)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr object_addr = link->addr - offsets->generator.iframe;
	bool has_top = offsets->frame.stackpointer != OFFSET_ABSENT;
	size_t end;
	const uint8_t *bytes = frame_copy(walk, frame, &end);

	if (!bytes)
		return HOLDS_NONE;
	if (has_top && field_u64(bytes, offsets->frame.stackpointer) - frame->addr < end)
		end = field_u64(bytes, offsets->frame.stackpointer) - frame->addr;
	for (int i = 0; i < HELD_MAX_WORDS; i++) {
		uint64_t word;
		const struct link_copy *other;

		if (end < offsets->frame.localsplus + sizeof(word))
			return HOLDS_NONE;
		end -= sizeof(word);
		word = field_u64(bytes, (uint32_t)end) & ~(uint64_t)OBJECT_TAG_MASK;
		if (word == object_addr)
			return HOLDS;
		other = has_top && word
				? stack_copy_find_link(walk->copy, word + offsets->generator.iframe)
				: NULL;
		walk->copy->nr_steps++;
		if (other && link_is_generator(other, offsets))
			return HOLDS_ANOTHER;
	}
	return HOLDS_NONE;
}

bool link_path_holds(struct frame_walk *walk, struct link_copy *link, const struct link_path *path)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	uint32_t nr_links = path->nr_links;
	const struct walked_frame *below;
	struct link_copy *outermost;
	enum holding holding;

	while (nr_links > 0 && !link_is_generator(path->links[nr_links - 1], offsets))
		nr_links--;
	outermost = nr_links > 0 ? path->links[nr_links - 1] : link;
	if (!path->nr_below || !outermost || !link_is_generator(outermost, offsets))
		return true;
	below = &walk->list->frames[path->nr_below - 1];
	if (!stack_copy_holds(walk->copy, below->addr))
		return true; /* a generator itself, whose own link was looked at */
	holding = frame_holds(walk, below, outermost);
	if (holding == HOLDS)
		outermost->held = true;
	if (holding == HOLDS_ANOTHER || (holding == HOLDS_NONE && outermost->held))
		return false;
	if (!outermost->reused && (holding == HOLDS || nr_links < path->nr_links))
		return true;
	return caller_stable(walk, outermost, below);
}

static bool is_bottom(const struct frame_walk *walk, remote_addr addr)
{
	remote_addr base_addr = walk->copy->base_frame_addr;

	return base_addr ? addr == base_addr : !addr;
}

/* Whether a path that ends at a frame of the list was there when the chunks were copied. */
static int path_end(struct frame_walk *walk, const struct link_path *path)
{
	return link_path_holds(walk, NULL, path) ? 0 : -ENOENT;
}

int link_path_follow(struct frame_walk *walk, remote_addr addr, struct link_path *ret_path)
{
	const struct frame_list *list = walk->list;
	remote_addr last_addr = 0; /* of the last link */

	ret_path->nr_links = 0;
	ret_path->nr_below = 0;
	for (;;) {
		struct link_copy *link;
		struct frame_words words;

		if (walk->copy->nr_steps > MAX_WALK_STEPS)
			return walk_lost(walk, LOSS_LINK);
		if (list->nr_frames && list->frames[list->nr_frames - 1].addr == addr) {
			ret_path->nr_below = list->nr_frames;
			return path_end(walk, ret_path);
		}
		if (is_bottom(walk, addr))
			return !list->nr_frames || last_addr == walk->copy->root_shim_addr
				       ? 0
				       : -ENOENT;
		if (!list->nr_frames && addr == walk->copy->root_shim_addr)
			return 0;
		link = stack_copy_find_link(walk->copy, addr);
		walk->copy->nr_steps++;
		if (!link) {
			walk->copy->nr_steps += MAX_DYING_FRAMES;
			ret_path->nr_below = frame_list_find(list, addr, MAX_DYING_FRAMES + 1);
			if (ret_path->nr_below)
				return path_end(walk, ret_path);
			walk->wanted_link_addr = addr;
			return -EAGAIN;
		}
		if (!link->valid || ret_path->nr_links == PATH_MAX_LINKS ||
		    !link_stable(walk, link))
			return -ENOENT;
		words = frame_words(&walk->build->offsets, link->bytes);
		if (words.owner < walk->build->traits.shim_owner &&
		    words.owner != OWNED_BY_GENERATOR)
			return -ENOENT;
		ret_path->links[ret_path->nr_links++] = link;
		last_addr = addr;
		addr = words.previous ? words.previous : link->driver_addr;
	}
}
