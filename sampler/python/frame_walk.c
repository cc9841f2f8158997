/* SPDX-License-Identifier: MIT */
#include "sampler/python/frame_walk.h"

#include <errno.h>

int walk_lost(struct frame_walk *walk, enum sample_loss loss)
{
	walk->loss = loss;
	return -EBADMSG;
}

/*
 * The code object of the frame that becomes the next of the list. The one that
 * stood there at the last tick is most likely it.
 */
static int walk_code(struct frame_walk *walk, uint64_t executable, struct code **ret_code)
{
	const struct frame_list *list = walk->list;

	if (list->nr_frames < list->nr_known) {
		const struct walked_frame *known = &list->frames[list->nr_frames];

		if (known->executable == executable &&
		    code_cache_holds(walk->codes, known->code, walk->clock)) {
			*ret_code = known->code;
			return 0;
		}
	}
	return code_cache_get(walk->codes, executable, walk->clock, ret_code);
}

int walk_check(struct frame_walk *walk, const struct frame_words *words, struct code **ret_code)
{
	struct code *code;
	int err = walk_code(walk, words->executable, &code);

	if (err == -EBADMSG || err == -EFAULT)
		return -ENOENT;
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err)
		return err;
	/* 3.11's and 3.12's prev_instr is one unit before the code at first. */
	if (words->instr_ptr + 2 < code->code_start_addr || words->instr_ptr >= code->code_end_addr)
		return -ENOENT;
	*ret_code = code;
	return 0;
}

int walk_append(struct frame_walk *walk, remote_addr addr, const struct frame_words *words,
		struct code *code)
{
	const struct walked_frame frame = {
		.addr = addr,
		.previous = words->previous,
		.executable = words->executable,
		.instr_ptr = words->instr_ptr,
		.code = code,
		.code_nr_loads = code->nr_loads,
		.stacktop = words->stacktop,
		.jumped_by = NOT_JUMPED,
		.hidden = words->owner != OWNED_BY_GENERATOR &&
			  words->instr_ptr < code->first_traceable_addr,
	};
	int err = frame_list_append(walk->list, &frame);

	return err == -E2BIG ? walk_lost(walk, LOSS_TOO_DEEP) : err;
}

int walk_frame(struct frame_walk *walk, remote_addr addr, const struct frame_words *words)
{
	struct code *code;
	int err = walk_check(walk, words, &code);

	return err ? err : walk_append(walk, addr, words, code);
}
