/* SPDX-License-Identifier: MIT */
#include "sampler/python/frame_walk.h"

#include <errno.h>

#include "sampler/python/code_place.h"
#include "sampler/python/executable.h"

int walk_lost(struct frame_walk *walk, enum sample_loss loss)
{
	walk->loss = loss;
	return -EBADMSG;
}

/*
 * The code object of the frame that becomes the next of the list. The one that
 * stood there at the last tick is most likely it.
 */
static int walk_code(struct frame_walk *walk, const struct frame_words *words,
		     struct code **ret_code)
{
	const struct frame_list *list = walk->list;
	const uint64_t executable = words->executable;

	if (walk->clock->is_past)
		return code_cache_get_told(walk->codes, executable, words->identity, ret_code);
	if (list->nr_frames < list->nr_known) {
		const struct walked_frame *known = &list->frames[list->nr_frames];

		if (known->executable == executable && !known->code->foreign &&
		    code_cache_holds(walk->codes, known->code, walk->clock)) {
			*ret_code = known->code;
			return known->code->function ? 0 : -EBADMSG;
		}
	}
	return code_cache_get(walk->codes, executable, walk->clock, ret_code);
}

/*
 * Where the instruction lies that a frame object knows by its index, which is -1 before
 * the first one: its address then is one before the code.
 */
static int find_instruction(const struct frame_walk *walk, struct frame_words *words,
			    const struct code *code)
{
	int64_t offset = (int64_t)words->lasti * walk->build->traits.lasti_unit_bytes;

	if (words->lasti < -1 || offset >= (int64_t)(code->code_end_addr - code->code_start_addr))
		return -ENOENT;
	words->instr_ptr = code->code_start_addr + (uint64_t)offset;
	return 0;
}

/* Whether a frame that stands there has come to its first traceable instruction. */
static bool has_begun(const struct code *code, remote_addr instr_addr)
{
	remote_addr place_addr;

	return code_known_place(code, instr_addr, &place_addr) &&
	       place_addr >= code->first_traceable_addr;
}

/*
 * Whether a frame is being destroyed: CPython takes its stack and its locals off it first. A frame
 * without locals does not tell.
 * Source: _PyFrame_ClearLocals(), Python/frame.c; _PyFrame_Clear() of 3.11 and 3.12.
 */
static bool is_cleared(const struct py_offsets *offsets, const struct code *code, remote_addr addr,
		       const struct frame_words *words)
{
	if (code->stack_offset <= offsets->frame.localsplus)
		return false;
	return words->stackpointer == addr + offsets->frame.localsplus || words->stacktop == 0;
}

int walk_append(struct frame_walk *walk, remote_addr addr, const struct frame_words *words,
		struct code *code)
{
	const bool on_stack = !code->foreign && words->owner != OWNED_BY_GENERATOR;
	const bool is_new = on_stack && !has_begun(code, words->instr_ptr);
	const struct walked_frame frame = {
		.addr = addr,
		.previous = words->previous,
		.executable = words->executable,
		.instr_ptr = words->instr_ptr,
		.code = code,
		.loop_addr = walk->loop_addr,
		.code_nr_loads = code->nr_loads,
		.is_entry = words->is_entry,
		.on_stack = on_stack,
		.is_new = is_new,
		.hidden = is_new ||
			  (on_stack && is_cleared(&walk->build->offsets, code, addr, words)),
	};
	int err = frame_list_append(walk->list, &frame);

	return err == -E2BIG ? walk_lost(walk, LOSS_TOO_DEEP) : err;
}

int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	remote_addr place_addr;
	struct code *code;
	int err = walk_code(walk, words, &code);

	if (err == -EBADMSG || err == -EFAULT)
		return -ENOENT;
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err)
		return err;
	if (walk->build->traits.frames_on_heap)
		err = find_instruction(walk, words, code);
	else
		err = code_place(walk->codes, code, walk->clock, words->instr_ptr, &place_addr);
	/* The thread's copy of code that is gone by now is gone, too. */
	if (err == -E2BIG ||
	    (err == -ENOENT && walk->clock->is_past && walk->build->tlbc.code_array))
		return walk_lost(walk, LOSS_CODE);
	return err ? err : walk_append(walk, addr, words, code);
}

/*
 * Check and append a generator's frame, or one that an extension has linked, which may run
 * anything (executable.h). A frame that is not shown is left out. Errors of walk_frame().
 */
static int walk_link(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	struct code *code;
	int err = -ENOENT;

	if (words->owner == OWNED_BY_GENERATOR)
		err = walk_frame(walk, addr, words);
	if (err != -ENOENT)
		return err;
	err = executable_get(walk->codes, words->executable, walk->clock, &code);
	/* What the frame ran then may be gone by now. */
	if ((err == -EBADMSG || err == -EFAULT) && walk->clock->is_past)
		err = -EAGAIN;
	if (err == -EBADMSG || err == -EFAULT)
		return -ENOENT;
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err || !code)
		return err;
	if (code->foreign)
		return walk_append(walk, addr, words, code);
	/* One that does not say where it stands has not begun, for CPython too. */
	return words->instr_ptr ? walk_frame(walk, addr, words) : 0;
}

/* Append a frame of the data stack, a generator's, or a shim's that turns out to be one. */
static int append_linked(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	const bool is_shim = words->owner >= walk->build->traits.shim_owner;
	int err = is_shim ? -ENOENT : walk_frame(walk, addr, words);

	if (err == -ENOENT)
		err = walk_link(walk, addr, words);
	return is_shim && err == -ENOENT ? 0 : err;
}

int walk_step(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	int err = 0;

	/* A generator that is suspended by now hangs on nobody. */
	if (walk->build->traits.frames_on_heap && !words->previous &&
	    words->state != walk->build->traits.executing)
		return -EAGAIN;
	if (walk->build->traits.frames_on_heap)
		err = words->executable ? walk_frame(walk, addr, words) : 0;
	else if (!executable_is_nothing(walk->codes, words->executable))
		err = append_linked(walk, addr, words);
	if (err == -EBADMSG && walk->loss == LOSS_TOO_DEEP)
		return -E2BIG;
	return err == -ENOENT ? -EBADMSG : err;
}
