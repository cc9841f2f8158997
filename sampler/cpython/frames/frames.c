/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/cpython/base/cycle.h"
#include "sampler/cpython/code/executable.h"

/* The list. */

enum { FIRST_MAX_FRAMES = 64 };

void frame_list_done(struct frame_list *list)
{
	if (!list)
		return;
	free(list->frames);
	free(list->steps);
	*list = (struct frame_list){0};
}

int frame_list_append(struct frame_list *list, const struct walked_frame *frame)
{
	const uint32_t nr = list->nr_frames;
	struct walked_frame *frames, *old;

	if (nr >= MAX_FRAMES)
		return -E2BIG;
	frames = array_reserve(list->frames, nr + 1, &list->max_frames, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	list->frames = frames;
	old = &frames[nr];
	if (list->nr_unchanged == nr && nr < list->nr_known && old->addr == frame->addr &&
	    old->code == frame->code && old->code_nr_loads == frame->code_nr_loads &&
	    old->executable == frame->executable && old->instr_ptr == frame->instr_ptr &&
	    old->hidden == frame->hidden)
		list->nr_unchanged++;
	frames[nr] = *frame;
	frames[nr].nr_begun = (nr ? frames[nr - 1].nr_begun : 0) + !frame->hidden;
	list->nr_frames++;
	if (list->nr_known < list->nr_frames)
		list->nr_known = list->nr_frames;
	return 0;
}

void frame_list_fit(struct frame_list *list, uint32_t nr_frames)
{
	uint32_t max_frames = nr_frames < FIRST_MAX_FRAMES / 2 ? FIRST_MAX_FRAMES : nr_frames * 2;
	struct walked_frame *frames;

	/* A walk that met only shims, or that was given up, has steps but no frames. */
	if (list->max_steps / 4 >= max_frames) {
		free(list->steps);
		list->steps = NULL;
		list->nr_steps = list->max_steps = 0;
	}
	if (list->nr_frames > max_frames || list->max_frames / 4 < max_frames)
		return;
	frames = realloc(list->frames, max_frames * sizeof(*frames));
	if (!frames)
		return;
	list->frames = frames;
	list->max_frames = max_frames;
	if (list->nr_known > max_frames)
		list->nr_known = max_frames;
}

void frame_list_use_codes(const struct frame_list *list)
{
	for (uint32_t i = 0; i < list->nr_known; i++)
		if (list->frames[i].code)
			list->frames[i].code->in_use = true;
}

void frame_list_begin(struct frame_list *list, uint32_t nr_kept)
{
	list->nr_frames = nr_kept;
	list->nr_unchanged = nr_kept;
}

uint32_t frame_list_find(const struct frame_list *list, remote_addr addr)
{
	uint32_t i = list->nr_frames;

	while (i && list->frames[i - 1].addr != addr)
		i--;
	return i;
}

int frame_list_add_step(struct frame_list *list, remote_addr addr, const struct frame_words *words)
{
	struct frame_step *steps =
		array_reserve(list->steps, list->nr_steps + 1, &list->max_steps, sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	list->steps = steps;
	steps[list->nr_steps++] = (struct frame_step){.addr = addr, .words = *words};
	return 0;
}

/* Walking. */

struct stack_ends stack_ends_from_copy(const struct py_build *build, remote_addr thread_addr,
				       const uint8_t *state)
{
	const struct py_offsets *offsets = &build->offsets;
	struct stack_ends ends = {
		.cframe_addr = optional_u64(state, offsets->thread.cframe),
		.base_frame_addr = optional_u64(state, offsets->thread.base_frame),
		.thread_addr = thread_addr,
	};

	if (offsets->cframe.current_frame == OFFSET_ABSENT)
		ends.current_frame_addr = field_u64(state, offsets->thread.current_frame);
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
	struct stack_ends ends = stack_ends_from_copy(build, thread_addr, state);

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

/* Append a frame that was checked. Returns 0, -EBADMSG as walk_lost(), or -ENOMEM. */
static int walk_append(struct frame_walk *walk, remote_addr addr, const struct frame_words *words,
		       struct code *code)
{
	const bool on_stack = !code->is_not_code && words->owner != OWNED_BY_GENERATOR;
	const uint32_t locals = walk->build->offsets.frame.localsplus;
	/*
	 * When a frame is destroyed, CPython first clears its stack and its locals. A frame without
	 * locals does not show it. Source: _PyFrame_ClearLocals(), Python/frame.c; _PyFrame_Clear()
	 * of 3.11 and 3.12.
	 */
	const bool is_cleared = on_stack && code->stack_offset > locals &&
				(words->stackpointer == addr + locals || words->stacktop == 0);
	remote_addr place_addr;
	const bool is_new = on_stack && (!code_known_place(code, words->instr_ptr, &place_addr) ||
					 place_addr < code->bytecode.first_traceable_addr);
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
		.hidden = is_new || is_cleared,
	};
	int err = frame_list_append(walk->list, &frame);

	return err == -E2BIG ? walk_lost(walk, LOSS_TOO_DEEP) : err;
}

int walk_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	const int64_t offset = (int64_t)words->lasti * walk->build->traits.lasti_unit_bytes;
	const struct frame_list *list = walk->list;
	const struct walked_frame *known =
		list->nr_frames < list->nr_known ? &list->frames[list->nr_frames] : NULL;
	remote_addr place_addr;
	struct code *code;
	int err;

	/* The code that the frame at this index ran at the last tick is the most likely one. */
	if (walk->clock->frames_are_older) {
		err = code_cache_get_reported(walk->codes, words->executable, words->identity,
					      &code);
	} else if (known && known->executable == words->executable && !known->code->is_not_code &&
		   code_cache_is_current(walk->codes, known->code, walk->clock)) {
		code = known->code;
		err = code->function ? 0 : -EBADMSG;
	} else {
		err = code_cache_get(walk->codes, words->executable, walk->clock, &code);
	}
	if (err == -EBADMSG || err == -EFAULT)
		return -ENOENT;
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err)
		return err;
	if (!walk->build->traits.frames_on_heap)
		err = code_place(walk->codes, code, walk->clock, words->instr_ptr, &place_addr);
	else if (words->lasti < -1 ||
		 offset >= (int64_t)(code->bytecode.end_addr - code->bytecode.start_addr))
		err = -ENOENT;
	else /* -1 before the first instruction: one unit before the code */
		words->instr_ptr = code->bytecode.start_addr + (uint64_t)offset;
	/* If the code is gone by now, the thread's copy of it is gone, too. */
	if (err == -E2BIG ||
	    (err == -ENOENT && walk->clock->frames_are_older && walk->build->tlbc.code_array))
		return walk_lost(walk, LOSS_CODE);
	return err ? err : walk_append(walk, addr, words, code);
}

/*
 * Append a frame that an extension has linked, which may run anything (executable_get()). Leaves
 * out a frame that is not shown. Errors of walk_frame().
 */
static int walk_link(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	struct code *code;
	int err = executable_get(walk->codes, words->executable, walk->clock, &code);

	/* What the frame ran may be gone by now. */
	if ((err == -EBADMSG || err == -EFAULT) && walk->clock->frames_are_older)
		err = -EAGAIN;
	if (err == -EBADMSG || err == -EFAULT)
		return -ENOENT;
	if (err == -EAGAIN || err == -E2BIG)
		return walk_lost(walk, LOSS_CODE);
	if (err || !code)
		return err;
	if (code->is_not_code)
		return walk_append(walk, addr, words, code);
	/* Without an instr_ptr it has not begun, for CPython as well. */
	return words->instr_ptr ? walk_frame(walk, addr, words) : 0;
}

/*
 * Append the frame at addr, whose words were read, in a walk along `previous`. Leaves out a frame
 * that is not shown. Returns 0; -EBADMSG (it cannot be a frame, or walk->loss); -EAGAIN (it has no
 * caller); -E2BIG, -ENOMEM, -ESRCH, -EPERM.
 */
static int walk_step(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	const struct py_traits *traits = &walk->build->traits;
	const bool is_shim = words->owner >= traits->shim_owner;
	int err = 0;

	/* A generator that was suspended meanwhile has no caller. */
	if (traits->frames_on_heap && !words->previous && words->state != traits->executing)
		return -EAGAIN;
	if (traits->frames_on_heap) {
		err = words->executable ? walk_frame(walk, addr, words) : 0;
	} else if (!executable_is_hidden(walk->codes, words->executable)) {
		err = is_shim ? -ENOENT : walk_frame(walk, addr, words);
		if (err == -ENOENT)
			err = walk_link(walk, addr, words);
		if (err == -ENOENT && is_shim)
			err = 0;
	}
	if (err == -EBADMSG && walk->loss == LOSS_TOO_DEEP)
		return -E2BIG;
	return err == -ENOENT ? -EBADMSG : err;
}

/*
 * Whether it is the entry frame, which the interpreter's loop has on the C stack (3.12 and newer).
 */
static bool is_entry_frame(const struct code_cache *codes, const struct frame_words *words)
{
	/* Extensions link frames with that owner, too, but those run something. */
	return !codes->build->traits.frames_on_heap &&
	       codes->build->offsets.frame.is_entry == OFFSET_ABSENT &&
	       words->owner >= codes->build->traits.shim_owner &&
	       executable_is_hidden(codes, words->executable);
}

/* Whether the thread is in exactly that many calls of the interpreter's loop. */
static bool has_loops(const struct frame_walk *walk, const struct stack_ends *ends,
		      uint64_t nr_loops)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr addr = ends->cframe_addr;
	uint64_t nr = 0;

	if (ends->has_nr_loops)
		return ends->nr_loops == nr_loops;
	/* The outermost _PyCFrame is part of the thread state. */
	while (addr && addr - ends->thread_addr >= offsets->thread.size) {
		if (nr++ == nr_loops ||
		    remote_memory_read_u64(walk->codes->memory, addr + offsets->cframe.previous,
					   &addr))
			return false;
	}
	return addr && nr == nr_loops;
}

/*
 * Whether a stack whose outermost frame has no link is all that the thread has. The executables
 * were read before this, which is_entry_frame() needs.
 */
static bool is_whole(const struct frame_walk *walk, const struct stack_ends *ends)
{
	const struct frame_list *list = walk->list;
	uint64_t nr_entries = 0;
	bool ends_in_entry = true;

	for (uint32_t i = 0; i < list->nr_steps; i++) {
		const struct frame_words *words = &list->steps[i].words;

		/* C called the interpreter's loop for this frame, or it is the entry frame. */
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
 * Whether the innermost frame is linked to its caller. A frame becomes current some instructions
 * before its `previous` is set; until then `previous` is left over from an earlier frame at that
 * place. But a new frame directly follows its caller's, or is the first in its chunk.
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
	/* The first word of a thread's first chunk is unused. */
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
 * Follow the links to the end, or to the anchor, and collect the list's steps. *ret_open: the last
 * step has no link, or there are no steps. Errors of frames_walk().
 */
static int follow(struct frame_walk *walk, const struct stack_ends *ends, remote_addr anchor_addr,
		  bool *ret_anchored, bool *ret_open)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	remote_addr addr = ends->current_frame_addr;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct cycle_detector cycle = {0};
	int err = ends->current_err;

	walk->list->nr_steps = 0;
	*ret_anchored = false;
	*ret_open = false;
	while (!err && addr && addr != ends->base_frame_addr && !*ret_anchored) {
		/* Each frame is followed by one shim at most. */
		if (cycle_detector_visit(&cycle, addr))
			return walk_lost(walk, LOSS_UNFINISHED);
		if (cycle.nr > 2ull * MAX_FRAMES + 1)
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

/* The initial state of a walk. */
static struct frame_walk new_walk(struct code_cache *codes, const struct code_clock *clock,
				  struct frame_list *list)
{
	return (struct frame_walk){
		.build = codes->build,
		.codes = codes,
		.clock = clock,
		.list = list,
		.loss = LOSS_UNFINISHED, /* unless another reason is found */
	};
}

/*
 * Append the frames of the steps, outermost first, and check that they are the whole stack.
 * is_open: the last step has no link.
 */
static int finish(struct frame_walk *walk, const struct stack_ends *ends, bool is_open)
{
	struct frame_list *list = walk->list;
	int err = 0;

	for (uint32_t i = list->nr_steps; !err && i-- > 0;) {
		struct frame_step *step = &list->steps[i];

		err = walk_step(walk, step->addr, &step->words);
		/* Its executable has been read, which is_entry_frame() needs. */
		if (!err && is_entry_frame(walk->codes, &step->words))
			walk->loop_addr = step->addr;
	}
	list->loop_addr = walk->loop_addr;
	/* The outermost _PyCFrame is part of the thread state. */
	if (ends->cframe_addr)
		list->loop_addr =
			ends->cframe_addr - ends->thread_addr < walk->build->offsets.thread.size
				? 0
				: ends->cframe_addr;
	if (err == -E2BIG || err == -EAGAIN)
		return -EBADMSG;
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

int frames_walk_steps(struct code_cache *codes, const struct code_clock *clock,
		      const struct stack_ends *ends, struct frame_list *list,
		      enum sample_loss *ret_loss)
{
	struct frame_walk walk = new_walk(codes, clock, list);
	const bool is_open = !list->nr_steps || !list->steps[list->nr_steps - 1].words.previous;
	int err;

	frame_list_begin(list, 0);
	err = finish(&walk, ends, is_open);
	*ret_loss = walk.loss;
	return err;
}

/*
 * Walking a memory that does not change but may lack pieces. If the links lead nowhere, as in core
 * files that lack the C stack, frames are found by the data-stack chunks alone (3.11 and newer):
 * the code object gives the size of a frame, and its callee begins where it ends.
 */

/* Consecutive frames that may lack their code object; what follows is no frame. */
enum { MAX_MISSING = 8 };

/*
 * More chunks count as damage: at 16 KiB each, this is 256 MiB of stack. CHUNK_MAX_BYTES limits a
 * chunk: a stack of MAX_FRAMES has about 100 MB.
 */
#define MAX_CHUNKS	16384
#define CHUNK_MAX_BYTES (512u << 20)

/* Room for the fields of a chunk before its frames. */
enum { CHUNK_HEADER_BYTES = 40 };

/* The used part of a chunk, [start, end). */
struct chunk {
	remote_addr start;
	remote_addr end;
};

/* Words that may be skipped, in all chunks, because no frame begins there. */
#define MAX_SKIPS (64u << 10)

struct core_walk {
	struct frame_walk walk;
	const struct stack_ends *ends;
	struct chunk *chunks; /* newest first; owned */
	uint32_t nr_chunks, max_chunks;
	bool has_all_chunks;  /* the list reaches the oldest chunk */
	remote_addr *outline; /* the frames found in chunks, outermost first; owned */
	uint32_t nr_outlined, max_outlined;
	bool is_outlined;	 /* the outline was made */
	size_t nr_skips_left;	 /* out of MAX_SKIPS */
	size_t nr_below;	 /* frames of the outline below those walked */
	remote_addr lowest_addr; /* of the outermost walked frame on the data stack; 0: none */
	unsigned int nr_missing; /* consecutive frames without code object */
	bool bridged;
};

/* Read the chunk at addr, whose frames end at top_addr (0: use the chunk's own top). */
static int read_chunk(const struct code_cache *codes, remote_addr addr, remote_addr top_addr,
		      struct chunk *ret_chunk, remote_addr *ret_previous_addr)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	uint8_t header[CHUNK_HEADER_BYTES];
	uint64_t size, top;
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(codes->memory, addr, header, offsets->chunk.data);
	if (err)
		return err;
	size = field_u64(header, offsets->chunk.size);
	top = field_u64(header, offsets->chunk.top);
	if (size > CHUNK_MAX_BYTES || __builtin_mul_overflow(top, sizeof(uint64_t), &top) ||
	    top > size)
		return -EBADMSG;
	if (!top_addr)
		top_addr = addr + offsets->chunk.data + top;
	if (top_addr < addr + offsets->chunk.data || top_addr > addr + size)
		return -EBADMSG;
	*ret_previous_addr = field_u64(header, offsets->chunk.previous);
	/* push_chunk() leaves the first word of the oldest chunk unused. */
	*ret_chunk = (struct chunk){
		.start = addr + offsets->chunk.data + (*ret_previous_addr ? 0 : sizeof(uint64_t)),
		.end = top_addr,
	};
	return 0;
}

/*
 * List the chunks, newest first, as far as they can be read. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
static int list_chunks(struct core_walk *core)
{
	remote_addr top_addr = core->ends->datastack_top_addr;
	remote_addr addr = core->ends->newest_chunk_addr;
	struct cycle_detector cycle = {0};

	while (addr && !cycle_detector_visit(&cycle, addr) && core->nr_chunks < MAX_CHUNKS) {
		struct chunk *chunks = array_reserve(core->chunks, core->nr_chunks + 1,
						     &core->max_chunks, sizeof(*chunks));
		int err;

		if (!chunks)
			return -ENOMEM;
		core->chunks = chunks;
		err = read_chunk(core->walk.codes, addr, top_addr, &chunks[core->nr_chunks], &addr);
		if (err)
			return remote_error_is_fatal(err) ? err : 0;
		core->nr_chunks++;
		top_addr = 0;
	}
	core->has_all_chunks = !addr && core->nr_chunks;
	return 0;
}

/* Read the size of the frame at addr. Returns 0, -EBADMSG (no frame is there), -EFAULT, … */
static int read_size(const struct core_walk *core, remote_addr addr, uint32_t *ret_size_bytes)
{
	struct code_cache *codes = core->walk.codes;
	const struct py_offsets *offsets = &codes->build->offsets;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct frame_words words;
	remote_addr place_addr;
	struct code *code;
	int err = remote_memory_read(codes->memory, addr, bytes, frame_head_bytes(offsets));

	if (err)
		return err;
	words = frame_words(offsets, bytes);
	if (!words.executable || words.owner != OWNED_BY_THREAD)
		return -EBADMSG;
	err = code_cache_get(codes, words.executable, core->walk.clock, &code);
	if (!err)
		err = code_place(codes, code, core->walk.clock, words.instr_ptr, &place_addr);
	if (!err)
		*ret_size_bytes = code->frame_size_bytes;
	return err;
}

/* Find the frames of a chunk, skipping what is no frame. Returns 0, -ENOMEM, -ESRCH or -EPERM. */
static int outline_chunk(struct core_walk *core, const struct chunk *chunk)
{
	remote_addr addr = chunk->start;

	while (addr < chunk->end && core->nr_outlined < MAX_FRAMES) {
		uint32_t size_bytes = 0;
		int err = read_size(core, addr, &size_bytes);

		if (remote_error_is_fatal(err))
			return err;
		if (err || !size_bytes || size_bytes > chunk->end - addr) {
			if (!core->nr_skips_left)
				return 0;
			core->nr_skips_left--;
			addr += sizeof(uint64_t);
			continue;
		}
		remote_addr *addrs = array_reserve(core->outline, core->nr_outlined + 1,
						   &core->max_outlined, sizeof(*addrs));

		if (!addrs)
			return -ENOMEM;
		core->outline = addrs;
		addrs[core->nr_outlined++] = addr;
		addr += size_bytes;
	}
	return 0;
}

/* Whether the walk may find another frame after that error. */
static bool is_gap(int err)
{
	return err == -EFAULT || err == -EBADMSG || err == -EAGAIN;
}

/* Whether the words can be a frame's although its code object cannot be read. */
static bool may_be_frame(const struct core_walk *core, remote_addr addr,
			 const struct frame_words *words)
{
	return core->nr_missing < MAX_MISSING && addr % sizeof(uint64_t) == 0 &&
	       words->executable && words->previous != addr &&
	       (core->walk.build->traits.frames_on_heap ||
		words->owner < core->walk.build->traits.shim_owner);
}

/*
 * Whether the frame is the one below an __init__ that was called from Python (3.13 and newer). It
 * is not shown, and its code object is a constant of a file, which a core lacks. It stands at the
 * second of four instructions; no function calls another one as early.
 */
static bool is_init_cleanup(const struct core_walk *core, const struct frame_words *words)
{
	enum { INIT_CLEANUP_MAX_BYTES = 4 };
	const uint32_t start = core->walk.build->offsets.code.code_adaptive;
	uint64_t word;

	return start != OFFSET_ABSENT &&
	       words->instr_ptr - (words->executable + start) <= INIT_CLEANUP_MAX_BYTES &&
	       remote_memory_read_u64(core->walk.codes->memory, words->executable, &word) != 0;
}

/* Append the frame at addr; *ret_next gets its `previous`. */
static int core_step(struct core_walk *core, remote_addr addr, remote_addr *ret_next)
{
	struct frame_walk *walk = &core->walk;
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
	if (!err) {
		core->nr_missing = 0;
	} else if (is_gap(err) && may_be_frame(core, addr, &words)) {
		struct code *missing = code_cache_missing(walk->codes);

		err = 0;
		if (!is_init_cleanup(core, &words)) {
			core->nr_missing++;
			err = missing ? walk_append(walk, addr, &words, missing) : -ENOMEM;
		}
	}
	if (err)
		return err;
	if (walk->list->nr_frames > nr_before && !on_heap && words.owner == OWNED_BY_THREAD)
		core->lowest_addr = addr;
	*ret_next = words.previous;
	return 0;
}

/* Whether the walk, which ended with err, has reached the outermost frame on the data stack. */
static bool core_is_whole(const struct core_walk *core, int err)
{
	const struct stack_ends *ends = core->ends;
	const remote_addr bottom_addr =
		core->has_all_chunks ? core->chunks[core->nr_chunks - 1].start : 0;

	if (!ends->newest_chunk_addr)
		return !err;
	if (!core->lowest_addr)
		return ends->datastack_top_addr <= bottom_addr;
	return core->lowest_addr == bottom_addr;
}

/*
 * Find the innermost frame on the data stack below those walked: *ret_addr, or 0 if there is none.
 * Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
static int find_below(struct core_walk *core, remote_addr *ret_addr)
{
	int err = 0;

	*ret_addr = 0;
	if (!core->is_outlined) {
		for (uint32_t i = core->nr_chunks; !err && i > 0; i--)
			err = outline_chunk(core, &core->chunks[i - 1]);
		if (err)
			return err;
		core->is_outlined = true;
		core->nr_below = core->nr_outlined;
	}
	while (core->lowest_addr && core->nr_below > 0 &&
	       core->outline[core->nr_below - 1] != core->lowest_addr)
		core->nr_below--;
	if (core->lowest_addr && core->nr_below > 0)
		core->nr_below--;
	if (core->nr_below > 0)
		*ret_addr = core->outline[core->nr_below - 1];
	return 0;
}

/* Follow `previous` from addr to the end of the links. */
static int core_follow(struct core_walk *core, remote_addr addr, struct cycle_detector *cycle)
{
	int err = 0;

	while (!err && addr && addr != core->ends->base_frame_addr) {
		if (cycle_detector_visit(cycle, addr) || cycle->nr > 2ull * MAX_FRAMES + 1)
			return -E2BIG;
		err = core_step(core, addr, &addr);
	}
	/* 3.15 has a base frame: the stack must end there. */
	if (!err && core->ends->base_frame_addr && !addr && core->walk.list->nr_frames)
		err = -EAGAIN;
	return err;
}

static int walk_all(struct core_walk *core)
{
	struct cycle_detector cycle = {0};
	remote_addr addr = core->ends->current_frame_addr;
	int err = core->ends->current_err;
	int below_err;

	for (;;) {
		if (!err)
			err = core_follow(core, addr, &cycle);
		if (err && !is_gap(err))
			return err;
		if (core_is_whole(core, err))
			return 0;
		below_err = find_below(core, &addr);
		if (below_err || !addr)
			return below_err ? below_err : err;
		core->bridged = true;
		err = 0;
	}
}

int frames_walk_core(struct code_cache *codes, const struct code_clock *clock,
		     const struct stack_ends *ends, struct frame_list *list, bool *ret_bridged)
{
	struct core_walk core = {
		.walk = new_walk(codes, clock, list),
		.ends = ends,
		.nr_skips_left = MAX_SKIPS,
	};
	int err = list_chunks(&core);

	list->nr_known = 0;
	frame_list_begin(list, 0);
	if (!err)
		err = walk_all(&core);
	/* The walk appended the innermost frame first. */
	for (uint32_t i = 0, j = list->nr_frames; i + 1 < j; i++) {
		struct walked_frame swapped = list->frames[i];

		list->frames[i] = list->frames[--j];
		list->frames[j] = swapped;
	}
	free(core.chunks);
	free(core.outline);
	*ret_bridged = core.bridged;
	return err;
}
