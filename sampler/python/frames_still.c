/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "sampler/python/circle.h"
#include "sampler/python/frame_walk.h"
#include "sampler/python/stack_outline.h"

/* So many frames in a row may lack their code object; what comes then are no frames. */
enum { MAX_MISSING = 8 };

struct still_walk {
	struct frame_walk walk;
	const struct stack_ends *ends;
	struct stack_outline outline; /* once has_outline */
	bool has_outline;
	remote_addr bottom_addr; /* of the outermost frame on the data stack; 0: not known */
	size_t nr_below;	 /* so many of its frames lie below those that were walked */
	remote_addr lowest_addr; /* of the outermost frame walked on the data stack; 0: none */
	unsigned int nr_missing; /* frames in a row without code object */
	bool bridged;
};

/* Whether another frame may be found in spite of that error. */
static bool is_gap(int err)
{
	return err == -EFAULT || err == -EBADMSG || err == -EAGAIN;
}

/* Whether the words can be a frame's although its code object cannot be read. */
static bool may_be_frame(const struct still_walk *still, remote_addr addr,
			 const struct frame_words *words)
{
	return still->nr_missing < MAX_MISSING && addr % sizeof(uint64_t) == 0 &&
	       words->executable && words->previous != addr &&
	       (still->walk.build->traits.frames_on_heap ||
		words->owner < still->walk.build->traits.shim_owner);
}

/*
 * Whether the frame is the one below an __init__ that is called from Python (3.13 and newer):
 * people do not see it, and its code object is a constant of a file, which a core lacks. It
 * stands on the second instruction of four; no function calls another one as early.
 */
static bool is_init_cleanup(const struct still_walk *still, const struct frame_words *words)
{
	enum { INIT_CLEANUP_MAX_BYTES = 4 };
	const uint32_t start = still->walk.build->offsets.code.code_adaptive;
	uint64_t word;

	return start != OFFSET_ABSENT &&
	       words->instr_ptr - (words->executable + start) <= INIT_CLEANUP_MAX_BYTES &&
	       remote_memory_read_u64(still->walk.codes->memory, words->executable, &word) != 0;
}

/* Append a frame whose code object cannot be read, if it may be one. */
static int append_missing(struct still_walk *still, remote_addr addr,
			  const struct frame_words *words)
{
	struct code *missing = code_cache_missing(still->walk.codes);

	if (is_init_cleanup(still, words))
		return 0;
	still->nr_missing++;
	return missing ? walk_append(&still->walk, addr, words, missing) : -ENOMEM;
}

/* Append the frame at addr; *ret_next is its `previous`. */
static int step(struct still_walk *still, remote_addr addr, remote_addr *ret_next)
{
	struct frame_walk *walk = &still->walk;
	const struct py_offsets *offsets = &walk->build->offsets;
	const bool on_heap = walk->build->traits.frames_on_heap;
	const uint32_t nr_before = walk->list->nr_frames;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct frame_words words;
	int err = remote_memory_read(walk->codes->memory, addr, bytes, frame_head_bytes(offsets));

	if (err)
		return err;
	words = frame_words(offsets, bytes);
	err = walk_step(walk, addr, &words);
	if (is_gap(err) && may_be_frame(still, addr, &words))
		err = append_missing(still, addr, &words);
	else if (!err)
		still->nr_missing = 0;
	if (err)
		return err;
	if (walk->list->nr_frames > nr_before && !on_heap && words.owner == OWNED_BY_THREAD)
		still->lowest_addr = addr;
	*ret_next = words.previous;
	return 0;
}

/* Whether the walk, which ended with err, has come to the outermost frame on the data stack. */
static bool is_whole(const struct still_walk *still, int err)
{
	const struct stack_ends *ends = still->ends;

	if (!ends->newest_chunk_addr)
		return !err;
	if (!still->lowest_addr)
		return ends->datastack_top_addr <= still->bottom_addr;
	return still->lowest_addr == still->bottom_addr;
}

/*
 * The innermost frame on the data stack below those that were walked: *ret_addr, or 0 if
 * there is none. 0; -ENOMEM, -ESRCH, -EPERM.
 */
static int find_below(struct still_walk *still, remote_addr *ret_addr)
{
	struct stack_outline *outline = &still->outline;
	int err;

	*ret_addr = 0;
	if (!still->ends->newest_chunk_addr)
		return 0;
	if (!still->has_outline) {
		err = stack_outline_learn(still->walk.codes, still->walk.clock, still->ends,
					  outline);
		if (err)
			return err;
		still->has_outline = true;
		still->nr_below = outline->nr_frames;
	}
	while (still->lowest_addr && still->nr_below > 0 &&
	       outline->frame_addrs[still->nr_below - 1] != still->lowest_addr)
		still->nr_below--;
	if (still->lowest_addr && still->nr_below > 0)
		still->nr_below--;
	if (still->nr_below > 0)
		*ret_addr = outline->frame_addrs[still->nr_below - 1];
	return 0;
}

/* Follow `previous` from addr as far as it leads: 0 at the bottom. */
static int follow(struct still_walk *still, remote_addr addr, struct circle *circle)
{
	int err = 0;

	while (!err && addr && addr != still->ends->base_frame_addr) {
		if (circle_closes(circle, addr) || circle->nr > 2ull * MAX_FRAMES + 1)
			return -E2BIG;
		err = step(still, addr, &addr);
	}
	/* A stack that 3.15 has a bottom for must end there. */
	if (!err && still->ends->base_frame_addr && !addr && still->walk.list->nr_frames)
		err = -EAGAIN;
	return err;
}

static int walk_all(struct still_walk *still)
{
	struct circle circle = {0};
	remote_addr addr = still->ends->current_frame_addr;
	int err = still->ends->current_err;
	int below_err;

	for (;;) {
		if (!err)
			err = follow(still, addr, &circle);
		if (err && !is_gap(err))
			return err;
		if (is_whole(still, err))
			return 0;
		below_err = find_below(still, &addr);
		if (below_err || !addr)
			return below_err ? below_err : err;
		still->bridged = true;
		err = 0;
	}
}

int frames_walk_still(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged)
{
	struct still_walk still = {
		.walk = {.build = codes->build, .codes = codes, .clock = clock, .list = list},
		.ends = ends,
	};
	int err;

	if (ends->newest_chunk_addr)
		still.bottom_addr = stack_outline_bottom(codes, ends);
	list->nr_known = 0;

	frame_list_begin(list, 0);
	err = walk_all(&still);
	frame_list_reverse(list);
	stack_outline_done(&still.outline);
	*ret_bridged = still.bridged;
	return err;
}
