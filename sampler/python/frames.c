/* SPDX-License-Identifier: MIT */
#include "sampler/python/frames.h"

#include <errno.h>

#include "sampler/python/frame_top.h"
#include "sampler/python/frame_walk.h"
#include "sampler/python/link_copy.h"
#include "sampler/python/link_path.h"
#include "sampler/python/page_border.h"

/*
 * Whether a frame was popped that names the last frame walked so far as its caller: that one
 * executes, and has no callee of its own kind. Its code may be gone already.
 */
static bool was_popped(const struct frame_walk *walk, const struct frame_words *words)
{
	const struct frame_list *list = walk->list;
	const struct walked_frame *last;

	if (!list->nr_frames || words->is_entry)
		return false;
	last = &list->frames[list->nr_frames - 1];
	return last->stacktop == STACKTOP_EXECUTING && words->previous == last->addr;
}

/*
 * Whether a frame at [addr, end_addr) lies below the top of the data stack as it was copied last.
 * *chunk is the index of the chunk that the frame before lay in: frames follow the chunks.
 */
static bool is_below_top(const struct frame_walk *walk, remote_addr addr, remote_addr end_addr,
			 size_t *chunk)
{
	const struct stack_copy *copy = walk->copy;
	size_t i = *chunk;

	while (i < copy->nr_chunks && addr - copy->chunks[i].addr >= copy->chunks[i].size_bytes)
		i++;
	*chunk = i;
	if (i == copy->nr_chunks)
		return false;
	if (copy->chunks[i].addr == copy->newest_chunk_addr)
		return end_addr <= copy->datastack_top_addr;
	/* All of an older chunk is below; a spare one is above. */
	return i + 1 < copy->nr_chunks;
}

/*
 * Whether the frame at addr, which names no code object, was live when it was copied: its code
 * object is gone since. It is known by its caller, the last frame walked so far, or by the object's
 * address, which has held one before; where popped frames keep their contents by the top as well.
 */
static bool was_live(const struct frame_walk *walk, remote_addr addr,
		     const struct frame_words *words)
{
	const struct frame_list *list = walk->list;
	const struct code *code = addr_map_get(&walk->codes->codes, words->executable);
	bool called = list->nr_frames &&
		      words->previous == list->frames[list->nr_frames - 1].addr && !words->is_entry;
	size_t chunk = 0;

	if (code ? code->function != NULL : !called)
		return false;
	return walk->build->traits.leaf_rule == LEAF_BY_EXECUTABLE ||
	       is_below_top(walk, addr, addr + walk->build->offsets.frame.localsplus, &chunk);
}

/*
 * Append the frame at addr with what lies between it and the frames walked so
 * far. 0; -ENOENT (it is no live frame), -EAGAIN, other errors of the walk.
 */
static int walk_push(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	struct frame_list *list = walk->list;
	uint32_t nr_frames = list->nr_frames;
	struct link_path path;
	struct code *code;
	/* The code first: words that are no frame's must not send us after links. */
	int err = walk_check(walk, words, &code);

	/* The bottom is learnt anew with every other first frame. */
	if (!nr_frames && (!list->nr_known || list->frames[0].executable != words->executable))
		walk->copy->root_shim_addr = 0;
	if (err == -ENOENT && was_live(walk, addr, words))
		return walk_lost(walk, LOSS_CODE);
	if (err)
		return err;
	err = link_path_follow(walk, NULL, words->previous, addr, &path);
	if (!err && !link_path_called(walk, &path, addr, words->executable))
		err = -ENOENT;
	/* What one calls while its locals are destroyed is called by its caller. */
	if (!err && path.nr_below > 0 && list->frames[path.nr_below - 1].cleared)
		err = -ENOENT;
	if (err == -ENOENT && walk->build->traits.leaf_rule == LEAF_BY_EXECUTABLE)
		walk->trimmed = true; /* it is live, and is left out with all above it */
	if (err)
		return err;
	if (!nr_frames && path.nr_links == 1 &&
	    !link_is_generator(path.links[0], &walk->build->offsets))
		walk->copy->root_shim_addr = words->previous;
	/* An executing frame has no callee of its own kind: this one was popped. */
	if (path.nr_links == 0 && path.nr_below > 0 && !words->is_entry &&
	    list->frames[path.nr_below - 1].stacktop == STACKTOP_EXECUTING)
		return -ENOENT;
	if (nr_frames - path.nr_below > MAX_DYING_FRAMES)
		return walk_lost(walk, LOSS_LINK);
	err = link_path_append(walk, &path);
	if (!err)
		err = walk_append(walk, addr, words, code);
	if (err) {
		list->nr_frames = nr_frames;
		return err;
	}
	if ((!nr_frames || !path.nr_links) && list->nr_plain == nr_frames &&
	    path.nr_below == nr_frames && list->nr_frames == nr_frames + 1)
		list->nr_plain = list->nr_frames;
	walk->copy->nr_steps += nr_frames - path.nr_below;
	for (uint32_t i = path.nr_below; i < nr_frames; i++) {
		list->has_dying = true;
		if (list->frames[i].jumped_by == NOT_JUMPED)
			list->frames[i].jumped_by = nr_frames;
	}
	return 0;
}

/*
 * Whether the frame at addr is what stood at its place of the list in the last
 * walk and hangs directly on the one below: then the list has it already. Most
 * frames of most stacks are. Every word that is looked at is compared: nothing
 * less proves sameness.
 */
static bool walk_again(struct frame_walk *walk, remote_addr addr, const struct frame_words *words)
{
	struct frame_list *list = walk->list;
	struct walked_frame *known;
	const struct walked_frame *below;

	if (list->changed || !list->nr_frames || list->nr_frames >= list->nr_known)
		return false;
	known = &list->frames[list->nr_frames];
	below = known - 1;
	if (known->addr != addr || known->executable != words->executable ||
	    known->instr_ptr != words->instr_ptr || known->previous != words->previous ||
	    known->stacktop != words->stacktop || words->previous != below->addr ||
	    words->is_entry || below->stacktop == STACKTOP_EXECUTING || known->cleared ||
	    below->cleared || frame_cleared(&walk->build->offsets, known->code, addr, words) ||
	    known->code_nr_loads != known->code->nr_loads ||
	    !code_cache_holds(walk->codes, known->code, walk->clock))
		return false;
	known->jumped_by = NOT_JUMPED;
	known->across = words->across;
	known->nr_begun = below->nr_begun + !known->hidden;
	if (list->nr_plain == list->nr_frames)
		list->nr_plain++;
	list->nr_unchanged = ++list->nr_frames;
	return true;
}

/* What lies at one place of a chunk. */
enum slot { SLOT_FRAME, SLOT_EMPTY, SLOT_BEYOND_COPY };

/*
 * Look at the place offset bytes into chunk; if a live frame is there it is
 * appended and *ret_slot is SLOT_FRAME. 0 or an error of the walk.
 */
static int walk_slot(struct frame_walk *walk, const struct chunk_copy *chunk, size_t offset,
		     enum slot *ret_slot)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	struct frame_words words;
	int err;

	*ret_slot = SLOT_EMPTY;
	if (offset + offsets->frame.localsplus > chunk->done_bytes) {
		/* No frame fits behind the end of the chunk. */
		if (offset + offsets->frame.localsplus <= chunk->size_bytes)
			*ret_slot = SLOT_BEYOND_COPY;
		return 0;
	}
	words = frame_words(offsets, chunk->bytes + offset);
	if (page_border_crosses(walk, chunk, offset)) {
		err = page_border_judge(walk, chunk, offset, &words);
		if (err)
			return err == -ENOENT ? 0 : err;
	}
	if (!words.executable || words.owner != OWNED_BY_THREAD)
		return 0;
	if (walk_again(walk, chunk->addr + offset, &words)) {
		*ret_slot = SLOT_FRAME;
		return 0;
	}
	if (was_popped(walk, &words))
		return 0;
	err = walk_push(walk, chunk->addr + offset, &words);
	if (err == -ENOENT)
		return 0;
	if (!err)
		*ret_slot = SLOT_FRAME;
	return err;
}

/* Whether the chunk's header is that of the chunk above below (NULL: of the oldest one). */
static bool chunk_linked(const struct frame_walk *walk, const struct chunk_copy *chunk,
			 const struct chunk_copy *below)
{
	const struct py_offsets *offsets = &walk->build->offsets;

	return chunk->done_bytes >= offsets->chunk.data &&
	       field_u64(chunk->bytes, offsets->chunk.previous) == (below ? below->addr : 0);
}

/* Where the words that were used when a newer chunk was made end, in bytes from the start. */
static size_t chunk_top(const struct frame_walk *walk, const struct chunk_copy *chunk)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	uint64_t top_bytes;

	if (!chunk->has_header)
		return 0;
	if (__builtin_mul_overflow(field_u64(chunk->bytes, offsets->chunk.top), sizeof(uint64_t),
				   &top_bytes) ||
	    top_bytes > chunk->size_bytes)
		return 0;
	return offsets->chunk.data + (size_t)top_bytes;
}

/*
 * Look for the first frame of a chunk above the one that was walked. The two were copied one
 * after the other, and in between the stack may have gone down and come up again: then the
 * frame where they meet was another one behind the second copy than in the first, and the
 * stack is trimmed to it.
 */
static int walk_next_chunk(struct frame_walk *walk, struct chunk_copy *next, enum slot *ret_slot)
{
	struct frame_list *list = walk->list;
	uint32_t nr_frames = list->nr_frames;
	const struct walked_frame below =
		nr_frames ? list->frames[nr_frames - 1] : (struct walked_frame){0};
	int err = walk_slot(walk, next, walk->build->offsets.chunk.data, ret_slot);

	if (err || *ret_slot != SLOT_FRAME)
		return err;
	if (next->below_valid && next->below_addr == below.addr &&
	    (next->below_executable & ~(uint64_t)OBJECT_TAG_MASK) != below.executable) {
		list->nr_frames = nr_frames;
		walk->trimmed = true;
		*ret_slot = SLOT_EMPTY;
	}
	next->below_addr = below.addr;
	return 0;
}

/*
 * Walk one chunk from its first frame. *ret_offset is where the walk ended;
 * *ret_slot why. When it comes to where the next chunk was begun, next is asked
 * for its first frame and *ret_slot is SLOT_FRAME if it went on there.
 */
static int walk_chunk(struct frame_walk *walk, const struct chunk_copy *chunk,
		      struct chunk_copy *next, size_t *ret_offset, enum slot *ret_slot)
{
	size_t offset = *ret_offset;
	int err;

	for (;;) {
		*ret_offset = offset;
		if (next && offset == chunk_top(walk, chunk) && chunk_linked(walk, next, chunk)) {
			err = walk_next_chunk(walk, next, ret_slot);
			if (err || *ret_slot == SLOT_FRAME || walk->trimmed)
				return err;
		}
		err = walk_slot(walk, chunk, offset, ret_slot);
		if (err || *ret_slot != SLOT_FRAME)
			return err;
		/* Generators come before the frame that was found. */
		offset += walk->list->frames[walk->list->nr_frames - 1].code->frame_size_bytes;
	}
}

/*
 * How many of the outermost frames of the last walk need no look at all: those that were
 * left out of the copy, and those that hang directly on each other where no code object
 * came or went, and all bytes of the chunks up to their words equal those of the copy
 * that they were found in. Comparing memory is several times faster than walking it.
 */
static uint32_t nr_frames_same(const struct frame_walk *walk)
{
	const struct frame_list *list = walk->list;
	const struct stack_copy *copy = walk->copy;
	uint32_t nr_same = copy->nr_kept;

	if (!list->walked.tick || list->walked.tick != copy->before_tick ||
	    !code_clock_stands(&list->walked, walk->clock))
		return nr_same;
	for (size_t i = copy->first_chunk; i < copy->nr_chunks; i++) {
		const struct chunk_copy *chunk = &copy->chunks[i];
		size_t same_bytes = chunk_copy_same_bytes(chunk);

		for (; nr_same < list->nr_plain; nr_same++) {
			remote_addr offset = list->frames[nr_same].addr - chunk->addr;

			if (offset >= chunk->size_bytes)
				break;
			if (list->frames[nr_same].across)
				return nr_same;
			/* Another thread's walk may have found another object there. */
			if (list->frames[nr_same].code_nr_loads !=
			    list->frames[nr_same].code->nr_loads)
				return nr_same;
			if (offset + walk->build->offsets.frame.localsplus > same_bytes)
				return nr_same;
		}
	}
	return nr_same;
}

/* Where a frame of the data stack lies: its chunk, one of the copy, and the offset in that. */
static void find_frame(const struct stack_copy *copy, remote_addr addr, size_t *ret_chunk,
		       size_t *ret_offset)
{
	size_t i = copy->first_chunk;

	while (i + 1 < copy->nr_chunks && addr - copy->chunks[i].addr >= copy->chunks[i].size_bytes)
		i++;
	*ret_chunk = i;
	*ret_offset = addr - copy->chunks[i].addr;
}

/* Begin with the frames that need no look. *ret_chunk and *ret_offset: what comes next. */
static void walk_resume(struct frame_walk *walk, size_t *ret_chunk, size_t *ret_offset)
{
	struct frame_list *list = walk->list;
	const struct stack_copy *copy = walk->copy;
	uint32_t nr_same = nr_frames_same(walk);
	const struct walked_frame *last;
	uint32_t nr_plain = list->nr_plain;

	frame_list_begin(list);
	/* push_chunk() leaves the first word of the oldest chunk unused. */
	*ret_chunk = 0;
	*ret_offset = walk->build->offsets.chunk.data + sizeof(uint64_t);
	if (!nr_same)
		return;
	list->nr_frames = nr_same;
	list->nr_unchanged = nr_same;
	list->nr_plain = nr_plain < nr_same ? nr_plain : nr_same;
	if (nr_same == copy->nr_kept) {
		find_frame(copy, list->frames[nr_same].addr, ret_chunk, ret_offset);
		return;
	}
	last = &list->frames[nr_same - 1];
	find_frame(copy, last->addr, ret_chunk, ret_offset);
	*ret_offset += last->code->frame_size_bytes;
}

/* Whether the newest chunk, as the thread state says behind them, is one of the oldest nr. */
static bool newest_is_known(const struct stack_copy *copy, size_t nr)
{
	while (nr > 0 && copy->chunks[nr - 1].addr != copy->newest_chunk_addr)
		nr--;
	return nr > 0;
}

static int walk_chunks(struct frame_walk *walk)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	struct stack_copy *copy = walk->copy;
	enum slot slot = SLOT_EMPTY;
	size_t offset;
	size_t i;
	int err;

	walk_resume(walk, &i, &offset);
	if (!copy->nr_chunks)
		return copy->newest_chunk_addr ? walk_lost(walk, LOSS_CHUNK) : 0;
	if (!copy->nr_kept && !chunk_linked(walk, &copy->chunks[0], NULL))
		return walk_lost(walk, LOSS_CHUNK);
	for (; i < copy->nr_chunks; i++) {
		struct chunk_copy *chunk = &copy->chunks[i];
		struct chunk_copy *next = i + 1 < copy->nr_chunks ? chunk + 1 : NULL;

		err = walk_chunk(walk, chunk, next, &offset, &slot);
		if (err)
			return err;
		if (slot != SLOT_FRAME)
			break;
		offset = offsets->chunk.data +
			 walk->list->frames[walk->list->nr_frames - 1].code->frame_size_bytes;
	}
	copy->ended_chunk = i;
	if (slot == SLOT_BEYOND_COPY)
		return walk_lost(walk, LOSS_GREW);
	/* A chunk that was made after the copy began may hold the rest. */
	if (i < copy->nr_chunks && !newest_is_known(copy, i + 1) &&
	    offset == chunk_top(walk, &copy->chunks[i]) &&
	    (i + 1 == copy->nr_chunks || !copy->chunks[i + 1].done_bytes))
		return walk_lost(walk, LOSS_CHUNK);
	return 0;
}

/*
 * Cut the list behind the innermost live frame where popped frames keep their
 * contents. Up to the last executing frame all are live. What lies above it is
 * suspended or was popped, and both look alike but for the instruction: a frame
 * that stands at a return was popped, or will be in a moment (its `previous` is
 * the current frame already); one that has not begun is being called; any other
 * is suspended in a call, as long as the data stack, whose top was copied a
 * moment later, reaches so far.
 */
static void cut_by_stacktop(struct frame_walk *walk)
{
	struct frame_list *list = walk->list;
	uint32_t n = frame_list_nr_to_executing(list);
	size_t chunk = 0;

	while (n < list->nr_frames) {
		const struct walked_frame *next = &list->frames[n];

		if (next->hidden || code_at_return(next->code, next->instr_ptr) ||
		    !is_below_top(walk, next->addr, next->addr + next->code->frame_size_bytes,
				  &chunk))
			break;
		n++;
	}
	list->nr_frames = n;
}

/*
 * Whether a stack without frames ends at its oldest chunk: one that was popped names no
 * other chunk either. The oldest one is known by the frames that were found in it, or ends
 * where it begins.
 */
static bool chunk_is_root(const struct frame_walk *walk)
{
	const struct stack_copy *copy = walk->copy;
	const struct chunk_copy *root = copy->chunks;

	return !copy->nr_chunks || root->addr == copy->root_chunk_addr ||
	       copy->datastack_top_addr ==
		       root->addr + walk->build->offsets.chunk.data + sizeof(uint64_t);
}

int frames_walk_up(struct frame_walk *walk)
{
	struct frame_list *list = walk->list;
	bool stacktop = walk->build->traits.leaf_rule == LEAF_BY_STACKTOP;
	bool unusable = walk->codes->next_version_unusable;
	bool found;
	int err;

	walk->trimmed = false;
	walk->copy->next_link = 0;
	err = walk_chunks(walk);
	walk->copy->nr_steps += list->nr_frames;
	list->walked.tick = 0;
	if (err)
		return err;
	if (list->nr_frames)
		walk->copy->root_chunk_addr = walk->copy->chunks[0].addr;
	else if (!chunk_is_root(walk))
		return walk_lost(walk, LOSS_CHUNK);
	if (frame_top_unknown(walk)) {
		walk->wanted_link_addr = walk->copy->current_frame_addr;
		return -EAGAIN;
	}
	/*
	 * Making a generator leaves a frame that looks live, but has not begun; one whose locals
	 * are being destroyed still names its code.
	 */
	while (list->nr_frames && list->frames[list->nr_frames - 1].hidden)
		list->nr_frames--;
	err = frame_top_walk(walk, stacktop ? frame_list_nr_to_executing(list) : list->nr_frames,
			     &found);
	if (err)
		return err;
	if (walk->copy->nr_steps > MAX_WALK_STEPS)
		return walk_lost(walk, LOSS_LINK);
	if (stacktop && !found)
		cut_by_stacktop(walk);
	if (list->nr_plain > list->nr_frames)
		list->nr_plain = list->nr_frames;
	/* What the counter proved before it was found wrong may have been read anew since. */
	if (unusable != walk->codes->next_version_unusable)
		return walk_lost(walk, LOSS_CODE);
	if (!list->has_dying)
		list->walked = *walk->clock;
	walk->has_new_code = walk_has_new_code(walk);
	page_border_learn(walk);
	return 0;
}
