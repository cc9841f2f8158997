/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/frames.h"

#include <errno.h>

#include "sampler/cpython/base/circle.h"
#include "sampler/cpython/code/executable.h"

struct stack_ends stack_ends_take(const struct py_build *build, remote_addr thread_addr,
				  const uint8_t *state)
{
	const struct py_offsets *offsets = &build->offsets;
	struct stack_ends ends = {.thread_addr = thread_addr};

	if (offsets->thread.cframe != OFFSET_ABSENT)
		ends.cframe_addr = field_u64(state, offsets->thread.cframe);
	if (offsets->cframe.current_frame == OFFSET_ABSENT)
		ends.current_frame_addr = field_u64(state, offsets->thread.current_frame);
	if (offsets->thread.base_frame != OFFSET_ABSENT)
		ends.base_frame_addr = field_u64(state, offsets->thread.base_frame);
	if (!build->traits.frames_on_heap) {
		ends.newest_chunk_addr = field_u64(state, offsets->thread.datastack_chunk);
		ends.datastack_top_addr = field_u64(state, offsets->thread.datastack_top);
	}
	return ends;
}

struct stack_ends stack_ends_read(struct remote_memory *memory, const struct py_build *build,
				  remote_addr thread_addr, const uint8_t *state)
{
	const uint32_t current_offset = build->offsets.cframe.current_frame;
	struct stack_ends ends = stack_ends_take(build, thread_addr, state);

	if (current_offset != OFFSET_ABSENT)
		ends.current_err = remote_memory_read_u64(memory, ends.cframe_addr + current_offset,
							  &ends.current_frame_addr);
	return ends;
}

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

/* Whether it is the frame that the interpreter's loop has on the C stack (3.12 and newer). */
static bool is_entry_frame(const struct code_cache *codes, const struct frame_words *words)
{
	/* Extensions link frames of that owner, too; those run something. */
	return !codes->build->traits.frames_on_heap &&
	       codes->build->offsets.frame.is_entry == OFFSET_ABSENT &&
	       words->owner >= codes->build->traits.shim_owner &&
	       executable_is_nothing(codes, words->executable);
}

/* Whether the thread is in so many calls of the interpreter's loop. */
static bool has_loops(const struct frame_walk *walk, const struct stack_ends *ends,
		      uint64_t nr_loops)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr addr = ends->cframe_addr;
	uint64_t nr = 0;

	if (ends->has_nr_loops)
		return ends->nr_loops == nr_loops;
	/* The outermost _PyCFrame is the thread state's own. */
	while (addr && addr - ends->thread_addr >= offsets->thread.size) {
		if (nr++ == nr_loops ||
		    remote_memory_read_u64(walk->codes->memory, addr + offsets->cframe.previous,
					   &addr))
			return false;
	}
	return addr && nr == nr_loops;
}

/*
 * Whether a stack whose last frame hangs on nothing is all that the thread has. What its frames run
 * was read before: that tells entry frames.
 */
static bool is_whole(const struct frame_walk *walk, const struct stack_ends *ends)
{
	const struct frame_list *list = walk->list;
	uint64_t nr_entries = 0;
	bool ends_in_entry = true;

	for (uint32_t i = 0; i < list->nr_steps; i++) {
		const struct frame_words *words = &list->steps[i].words;

		/* C called the interpreter's loop for it, or with it. */
		ends_in_entry = words->is_entry || is_entry_frame(walk->codes, words);
		nr_entries += ends_in_entry;
	}
	if (walk->build->traits.frames_on_heap)
		return true;
	if (ends->cframe_addr)
		return ends_in_entry && has_loops(walk, ends, nr_entries);
	if (!list->nr_steps)
		return true;
	return !ends->base_frame_addr && ends_in_entry;
}

/*
 * Whether the innermost frame hangs on its caller. A frame becomes current some instructions before
 * its `previous` is set: until then that is what an earlier frame had in its place. But a new frame
 * lies directly behind that of its caller, or first in its chunk.
 */
static bool is_linked(const struct frame_walk *walk, const struct stack_ends *ends)
{
	const uint64_t chunk_data_addr = ends->newest_chunk_addr + walk->build->offsets.chunk.data;
	const struct frame_list *list = walk->list;
	const struct walked_frame *newest, *caller;
	uint32_t nr_below;

	if (!list->nr_frames || walk->build->traits.frames_on_heap)
		return true;
	nr_below = list->nr_frames - 1;
	newest = &list->frames[nr_below];
	/* The first word of a thread's first chunk is left out. */
	if (!newest->is_new || newest->addr != ends->current_frame_addr ||
	    newest->addr - chunk_data_addr <= sizeof(uint64_t))
		return true;
	while (nr_below && !list->frames[nr_below - 1].on_stack)
		nr_below--;
	if (!nr_below)
		return false;
	caller = &list->frames[nr_below - 1];
	return caller->addr + caller->code->frame_size_bytes == newest->addr;
}

/*
 * Follow the links to the end, or to the anchor: the list's steps. *ret_open: the last of them hangs
 * on nothing, or there are none. Errors of frames_walk().
 */
static int follow(struct frame_walk *walk, const struct stack_ends *ends, remote_addr anchor_addr,
		  bool *ret_anchored, bool *ret_open)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr addr = ends->current_frame_addr;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct circle circle = {0};
	int err = ends->current_err;

	walk->list->nr_steps = 0;
	*ret_anchored = false;
	*ret_open = false;
	while (!err && addr && addr != ends->base_frame_addr && !*ret_anchored) {
		/* A shim stands at most behind each frame. */
		if (circle_closes(&circle, addr))
			return walk_lost(walk, LOSS_UNFINISHED);
		if (circle.nr > 2ull * MAX_FRAMES + 1)
			return walk_lost(walk, LOSS_TOO_DEEP);
		err = remote_memory_read(walk->codes->memory, addr, bytes,
					 frame_head_bytes(offsets));
		if (err)
			break;
		const struct frame_words words = frame_words(offsets, bytes);

		err = frame_list_add_step(walk->list, addr, &words);
		*ret_anchored = addr == anchor_addr;
		addr = words.previous;
	}
	if (err)
		return err == -EFAULT ? walk_lost(walk, LOSS_UNFINISHED) : err;
	*ret_open = !*ret_anchored && !addr;
	return 0;
}

/* Append what the steps lead to, the outermost first. */
static int append_steps(struct frame_walk *walk)
{
	int err = 0;

	for (uint32_t i = walk->list->nr_steps; !err && i-- > 0;) {
		struct frame_step *step = &walk->list->steps[i];

		err = walk_step(walk, step->addr, &step->words);
		/* What it runs was read by then: that tells entry frames. */
		if (!err && is_entry_frame(walk->codes, &step->words))
			walk->loop_addr = step->addr;
	}
	if (err == -E2BIG)
		return walk_lost(walk, LOSS_TOO_DEEP);
	if (err == -EAGAIN || (err == -EBADMSG && walk->loss == LOSS_MOVED))
		return walk_lost(walk, LOSS_UNFINISHED);
	return err;
}

/* As frame_list.loop_addr says. */
static remote_addr innermost_loop(const struct frame_walk *walk, const struct stack_ends *ends)
{
	if (!ends->cframe_addr)
		return walk->loop_addr;
	/* The outermost _PyCFrame is the thread state's own. */
	return ends->cframe_addr - ends->thread_addr < walk->build->offsets.thread.size
		       ? 0
		       : ends->cframe_addr;
}

/* A walk that has not begun. */
static struct frame_walk new_walk(struct code_cache *codes, const struct code_clock *clock,
				  struct frame_list *list)
{
	return (struct frame_walk){
		.build = codes->build,
		.codes = codes,
		.clock = clock,
		.list = list,
		.loss = LOSS_MOVED, /* no walk gives that reason */
	};
}

/* Append what the steps lead to, and see that it is all. is_open: the last of them hangs on nothing. */
static int finish(struct frame_walk *walk, const struct stack_ends *ends, bool is_open)
{
	int err = append_steps(walk);

	walk->list->loop_addr = innermost_loop(walk, ends);
	if (!err && ((is_open && !is_whole(walk, ends)) || !is_linked(walk, ends)))
		err = walk_lost(walk, LOSS_UNFINISHED);
	return err;
}

int frames_walk(struct code_cache *codes, const struct code_clock *clock,
		const struct stack_ends *ends, struct kept_frames *kept, struct frame_list *list,
		enum sample_loss *ret_loss)
{
	struct frame_walk walk = new_walk(codes, clock, list);
	bool anchored, is_open;
	int err = follow(&walk, ends, kept ? kept->anchor_addr : 0, &anchored, &is_open);

	frame_list_begin(list, kept && anchored ? kept->nr : 0);
	if (kept && !anchored)
		*kept = (struct kept_frames){.anchor_addr = 0};
	if (list->nr_frames)
		walk.loop_addr = list->frames[list->nr_frames - 1].loop_addr;
	if (!err)
		err = finish(&walk, ends, is_open);
	*ret_loss = walk.loss;
	return err;
}

int frames_take(struct code_cache *codes, const struct code_clock *clock,
		const struct stack_ends *ends, struct frame_list *list, enum sample_loss *ret_loss)
{
	struct frame_walk walk = new_walk(codes, clock, list);
	const bool is_open = !list->nr_steps || !list->steps[list->nr_steps - 1].words.previous;
	int err;

	frame_list_begin(list, 0);
	err = finish(&walk, ends, is_open);
	*ret_loss = walk.loss;
	return err;
}
