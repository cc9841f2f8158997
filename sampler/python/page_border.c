/* SPDX-License-Identifier: MIT */
#include "sampler/python/page_border.h"

#include <errno.h>

#include "sampler/python/frame_walk.h"

/*
 * For so many walks nothing below the frame may have changed: what comes and goes there as
 * fast would be copied half a microsecond later than what it has called. A frame that does not
 * change itself for as long is not worth a piece.
 */
enum { STEADY_WALKS = 64 };

/* So many of the innermost frames are looked at for one across a border. */
enum { MAX_LOOKED_AT = 16 };

size_t page_border_choose(const struct stack_copy *stack, const struct chunk_copy *chunk,
			  size_t window_bytes)
{
	const struct page_border *border = &stack->border;
	const remote_addr offset = border->addr - chunk->addr;

	/* A generator may call what lies there, too: only the word before the border tells. */
	if (!border->addr || stack->nr_links || border->nr_steady < STEADY_WALKS ||
	    border->nr_same >= STEADY_WALKS || chunk != &stack->chunks[stack->nr_chunks - 1])
		return 0;
	return offset > chunk->from_bytes && offset < window_bytes ? (size_t)offset : 0;
}

bool page_border_crosses(const struct frame_walk *walk, const struct chunk_copy *chunk,
			 size_t offset)
{
	return chunk->border_bytes > offset &&
	       chunk->border_bytes - offset <= walk->build->offsets.frame.instr_ptr;
}

/* Whether the list ends at the caller, and all below is what it was when this was learnt. */
static bool caller_stands(const struct page_border *border, const struct frame_list *list)
{
	const struct walked_frame *caller;

	if (list->nr_frames < border->index || list->nr_unchanged + 1 < border->index)
		return false;
	caller = &list->frames[border->index - 1];
	return caller->addr == border->caller_addr &&
	       caller->executable == border->caller_executable;
}

/* Keep what was seen to run at the border. */
static void remember(struct page_border *border, const struct code *code)
{
	for (size_t i = 0; i < MAX_BORDER_CODES; i++)
		if (border->codes[i].executable == code->addr &&
		    border->codes[i].start_addr == code->code_start_addr &&
		    border->codes[i].end_addr == code->code_end_addr)
			return;
	border->codes[border->nr_codes++ % MAX_BORDER_CODES] = (struct border_code){
		.executable = code->addr,
		.start_addr = code->code_start_addr,
		.end_addr = code->code_end_addr,
	};
}

/* The code object if the instruction is in it. 0, -ENOENT, -ENOMEM, -ESRCH, -EPERM. */
static int code_with(struct frame_walk *walk, uint64_t executable, remote_addr instr_addr,
		     struct code **ret_code)
{
	struct code *code;
	int err =
		executable ? code_cache_get(walk->codes, executable, walk->clock, &code) : -ENOENT;

	if (err)
		return err == -ENOMEM || err == -ESRCH || err == -EPERM ? err : -ENOENT;
	if (instr_addr < code->code_start_addr || instr_addr >= code->code_end_addr)
		return -ENOENT;
	*ret_code = code;
	return 0;
}

/* Whose instruction that is: of what was seen there, or what came there since. As code_with(). */
static int find_code(struct frame_walk *walk, const struct frame_words *words,
		     struct code **ret_code)
{
	struct page_border *border = &walk->copy->border;
	int err = -ENOENT;

	for (size_t i = 0; i < MAX_BORDER_CODES && err == -ENOENT; i++)
		if (words->instr_ptr >= border->codes[i].start_addr &&
		    words->instr_ptr < border->codes[i].end_addr)
			err = code_with(walk, border->codes[i].executable, words->instr_ptr,
					ret_code);
	if (err != -ENOENT)
		return err;
	err = code_with(walk, words->executable, words->instr_ptr, ret_code);
	if (!err)
		remember(border, *ret_code);
	return err;
}

/* Whether a live frame lies where what the frame at that offset has called would. */
static bool has_callee(const struct frame_walk *walk, const struct chunk_copy *chunk, size_t offset,
		       const struct code *code)
{
	const struct py_offsets *offsets = &walk->build->offsets;
	const size_t callee_offset = offset + code->frame_size_bytes;
	struct frame_words words;

	if (!code->frame_size_bytes ||
	    callee_offset + offsets->frame.localsplus > chunk->done_bytes)
		return false;
	words = frame_words(offsets, chunk->bytes + callee_offset);
	return words.executable && words.previous == chunk->addr + offset;
}

/*
 * Whether a frame without locals that stands at no return had ended by an exception, as far as
 * can be told: nothing ran there when it was copied, twice in a row.
 */
static bool left_by_exception(struct frame_walk *walk, const struct chunk_copy *chunk,
			      size_t offset, const struct frame_words *words,
			      const struct code *code)
{
	struct page_border *border = &walk->copy->border;
	const bool in_doubt = !words->executable && !has_callee(walk, chunk, offset, code);
	const bool again = in_doubt && border->doubt_instr_addr == words->instr_ptr;

	border->doubt_instr_addr = in_doubt ? words->instr_ptr : 0;
	return again;
}

int page_border_judge(struct frame_walk *walk, const struct chunk_copy *chunk, size_t offset,
		      struct frame_words *words)
{
	const remote_addr addr = chunk->addr + offset;
	struct page_border *border = &walk->copy->border;
	struct code *code = NULL;
	int err = -ENOENT;

	if (addr == border->frame_addr && words->previous == border->caller_addr &&
	    walk->list->nr_frames == border->index && caller_stands(border, walk->list))
		err = find_code(walk, words, &code);
	if (err == -ENOENT) {
		border->nr_steady = 0;
		walk->trimmed = true;
	}
	if (!err && code->stack_offset <= walk->build->offsets.frame.localsplus) {
		err = code_cache_find_returns(walk->codes, code);
		if (!err && (code_at_return(code, words->instr_ptr) ||
			     left_by_exception(walk, chunk, offset, words, code)))
			err = -ENOENT;
	}
	if (err)
		return err;
	words->executable = code->addr;
	words->across = true;
	return 0;
}

/* Whether the i-th frame of the list lies across a border of chunk, right above its caller. */
static bool is_across(const struct frame_walk *walk, const struct chunk_copy *chunk, uint32_t i)
{
	const struct walked_frame *frame = &walk->list->frames[i];
	const struct walked_frame *caller = frame - 1;

	return page_border_in_head(&walk->build->offsets, frame->addr) &&
	       frame->addr - chunk->addr < chunk->size_bytes &&
	       caller->addr - chunk->addr < chunk->size_bytes && frame->previous == caller->addr &&
	       frame->addr - caller->addr == caller->code->frame_size_bytes;
}

/* Look for a border among the innermost frames; one that was known stays if there is none. */
static void look_for_border(struct frame_walk *walk)
{
	const struct stack_copy *stack = walk->copy;
	const struct frame_list *list = walk->list;
	struct page_border *border = &walk->copy->border;
	uint32_t least = list->nr_frames > MAX_LOOKED_AT ? list->nr_frames - MAX_LOOKED_AT : 1;
	uint32_t i = list->nr_frames;

	while (i > least && !is_across(walk, &stack->chunks[stack->nr_chunks - 1], i - 1))
		i--;
	if (i <= least)
		return;
	if (border->frame_addr != list->frames[i - 1].addr)
		*border = (struct page_border){.addr = page_end(list->frames[i - 1].addr)};
	border->frame_addr = list->frames[i - 1].addr;
	border->index = i - 1;
	border->caller_addr = list->frames[i - 2].addr;
	border->caller_executable = list->frames[i - 2].executable;
}

/* Whether a frame across a border can be told there at all: its instruction must be its code's. */
static bool is_told(const struct py_build *build)
{
	return build->traits.leaf_rule == LEAF_BY_EXECUTABLE && build->traits.returns.value &&
	       !build->free_threaded;
}

void page_border_learn(struct frame_walk *walk)
{
	const struct frame_list *list = walk->list;
	struct page_border *border = &walk->copy->border;

	if (!is_told(walk->build) || !walk->copy->nr_chunks)
		return;
	if (!border->addr || walk->copy->nr_links || !caller_stands(border, list)) {
		border->nr_steady = 0;
		border->nr_same = 0;
		look_for_border(walk);
		return;
	}
	if (border->nr_steady < STEADY_WALKS)
		border->nr_steady++;
	if (list->nr_unchanged <= border->index)
		border->nr_same = 0;
	else if (border->nr_same < STEADY_WALKS)
		border->nr_same++;
	if (list->nr_frames > border->index &&
	    list->frames[border->index].addr == border->frame_addr)
		remember(border, list->frames[border->index].code);
}
