/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_loops.h"

#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/python/loop_entries.h"

/* Frames of a stack's end that are taken for the one that runs, while that is learnt. */
enum { MAX_CANDIDATES = 32 };

/* So much of what a loop has called is compared: a call or two of C. */
enum { MAX_STILL_BYTES = 2048 };

/* Note what of a C frame is none of its loop's. */
static void find_others(const struct dumped_stack *stack, remote_addr lookup_addr,
			remote_addr link_addr, struct loop_frame *frame)
{
	const struct cfi_section *section;
	const struct unwind_rule *rule =
		unwind_modules_find(stack->natives->modules, lookup_addr, &section);

	frame->other_addrs[frame->nr_others++] = link_addr;
	for (uint32_t i = 0; rule && i < rule->nr_saves; i++)
		if (rule->saves[i].kind == CFI_AT_CFA)
			frame->other_addrs[frame->nr_others++] =
				frame->cfa + (uint64_t)(int64_t)rule->saves[i].value;
}

static struct loop_frame loop_frame(const struct dumped_stack *stack, size_t index)
{
	const struct native_stacks *natives = stack->natives;
	const struct unwind_frame *frame = &natives->frames[index];

	return (struct loop_frame){
		.registers = &natives->registers[index],
		.caller = index + 1 < natives->nr_frames ? &natives->registers[index + 1] : NULL,
		.window = stack->window,
		.sp = frame->sp,
		.cfa = frame->cfa,
		.pc_addr = frame->pc,
		.kind = index == 0 ? LOOP_RUNS : LOOP_CALLS,
	};
}

/* Python calls through trampolines: its loop goes into no frame by itself then. */
static bool is_trampoline(const struct dumped_stack *stack, size_t index)
{
	const struct native_stacks *natives = stack->natives;

	return index < natives->nr_frames &&
	       unwind_modules_trampoline(natives->modules, natives->frames[index].lookup_addr);
}

/* What the innermost loop may have of the one around it. */
static void find_outer_instr(const struct dumped_stack *stack, struct dumped_loops *loops)
{
	remote_addr addr;

	if (loops->nr > 1 &&
	    loop_places_next_instr(stack->places, &loops->loops[1].frame, 0, &addr))
		loops->loops[0].frame.outer_instr_addr = addr;
}

/*
 * The code of the JIT that runs a loop's frames: the C frame next to it that is such code, and
 * not within an inner loop, which ends before first. NR_FRAMES of natives: there is none.
 */
static size_t find_executor(const struct dumped_stack *stack, size_t first, size_t loop)
{
	struct native_stacks *natives = stack->natives;

	for (size_t i = loop; i-- > first;)
		if (native_stacks_is_executor(natives, natives->frames[i].lookup_addr))
			return i;
	return natives->nr_frames;
}

/* What is known of the loop that is the C frame at index; those inside of it begin at first. */
static void describe(const struct dumped_stack *stack, size_t index, size_t first,
		     struct dumped_loop *loop)
{
	const struct native_stacks *natives = stack->natives;
	const size_t executor = find_executor(stack, first, index);

	loop->is_lone = is_trampoline(stack, index + 1);
	loop->is_in_jit = executor < natives->nr_frames;
	loop->lookup_addr = index > 0 ? natives->frames[index].lookup_addr : 0;
	loop->return_addr = index + 1 < natives->nr_frames ? natives->frames[index + 1].pc : 0;
	loop->inner_sp = index > 0 ? natives->frames[index - 1].sp : 0;
	find_others(stack, natives->frames[index].lookup_addr, loop->entry.link_addr, &loop->frame);
	if (!loop->is_in_jit)
		return;
	/* That has the loop's things in registers of its own. */
	loop->frame.kind = LOOP_IN_JIT;
	loop->frame.registers = &natives->registers[executor];
	loop->frame.pc_addr = natives->frames[executor].pc;
	loop->frame.sp = loop->frame.cfa;
}

/*
 * Whether a C frame may be a loop's by its length. Where one begins that is behind a hole is not
 * known.
 */
static bool has_length(const struct dumped_stack *stack, size_t index)
{
	const struct unwind_frame *frame = &stack->natives->frames[index];

	return frame->is_anchor || loop_places_is_length(stack->places, frame->cfa - frame->sp);
}

/* Whether the loop that was found last does not name another one than that. */
static bool may_be_next(const struct dumped_loops *loops, remote_addr entry_addr)
{
	const struct dumped_loop *inner = loops->nr ? &loops->loops[loops->nr - 1] : NULL;

	return !inner || !inner->entry.outer_addr || inner->entry.outer_addr == entry_addr;
}

void dumped_loops_find(const struct dumped_stack *stack, struct dumped_loops *loops)
{
	const uint32_t distance_bytes = stack->places->entry_distance_bytes;
	size_t first = 0;

	loops->nr = 0;
	for (size_t i = 0; i < stack->natives->nr_frames && loops->nr < DUMPED_STACK_MAX_LOOPS;
	     i++) {
		struct dumped_loop *loop = &loops->loops[loops->nr];

		loop->frame = loop_frame(stack, i);
		loop->entry_addr = loop->frame.cfa - distance_bytes;
		if (!loop->frame.cfa || loop->entry_addr < loop->frame.sp ||
		    loop->entry_addr >= loop->frame.cfa || !has_length(stack, i) ||
		    !may_be_next(loops, loop->entry_addr) ||
		    !dumped_entry_read(stack, loop->entry_addr, &loop->entry))
			continue;
		describe(stack, i, first, loop);
		first = i + 1;
		loops->nr++;
	}
	find_outer_instr(stack, loops);
}

/* Whether a word may be a return address: of a function that something tells of. */
static bool is_return_address(const struct dumped_stack *stack, uint64_t word)
{
	const struct cfi_section *section;

	return unwind_modules_has(stack->natives->modules, word) &&
	       unwind_modules_find(stack->natives->modules, word - 1, &section);
}

bool dumped_loops_is_still(const struct dumped_stack *stack, const struct dumped_loop *loop)
{
	const remote_addr end = loop->frame.cfa;
	const bool is_long = end - loop->inner_sp > MAX_STILL_BYTES;
	remote_addr addr = is_long ? end - MAX_STILL_BYTES : loop->inner_sp;
	uint32_t nr_same = 0;

	if (!stack->now || !loop->inner_sp)
		return false;
	for (; addr < end; addr += sizeof(uint64_t)) {
		uint64_t then, now;

		if (stack_window_u64(stack->window, addr, &then) || !is_return_address(stack, then))
			continue;
		if (stack_window_u64(stack->now, addr, &now) || now != then)
			return false;
		nr_same += addr < loop->entry_addr;
	}
	return nr_same > 0;
}

/* Learning. */

/* The C frame that addr lies in; NULL: there is none. */
static const struct unwind_frame *find_native(const struct dumped_stack *stack, remote_addr addr)
{
	for (size_t i = 0; i < stack->natives->nr_frames; i++) {
		const struct unwind_frame *frame = &stack->natives->frames[i];

		if (addr >= frame->sp && addr < frame->cfa)
			return frame;
	}
	return NULL;
}

static void vote_entry(struct loop_places *places, const struct unwind_frame *frame,
		       uint32_t distance_bytes)
{
	if (!places->entry_distance_bytes)
		loop_places_vote_entry(places, distance_bytes);
	if (distance_bytes == places->entry_distance_bytes && !frame->is_anchor)
		loop_places_vote_length(places, (uint32_t)(frame->cfa - frame->sp));
}

/* By the loops of the later look: those that are older than the copy are in both. */
static void learn_entries(const struct dumped_stack *stack)
{
	cleanup_free struct loop_entry *entries = NULL;

	if (loop_entries_read(stack->codes, stack->thread_addr, stack->late, true, &entries))
		return;
	for (uint32_t i = 0; i < stack->late->nr_frames; i++) {
		const remote_addr addr = entries[i].c_addr;
		const struct unwind_frame *frame = addr ? find_native(stack, addr) : NULL;
		struct dumped_entry entry;

		if (frame && dumped_entry_read(stack, addr, &entry))
			vote_entry(stack->places, frame, (uint32_t)(frame->cfa - addr));
	}
}

/* Whether a frame may be the one that a loop runs. */
static bool may_run(const struct dumped_loop *loop, const struct walked_frame *frame)
{
	return !loop->entry.leaf_addr || loop->entry.leaf_addr == frame->addr;
}

/* Vote by the frames of one loop that the later look has, up to the one at index. */
static void vote_upwards(const struct dumped_stack *stack, const struct dumped_loop *loop,
			 uint32_t index, uint32_t max_candidates)
{
	struct loop_candidate candidates[MAX_CANDIDATES];
	uint32_t nr = 0;

	for (uint32_t i = index + 1; i > 0 && max_candidates-- > 0; i--) {
		const struct walked_frame *frame = &stack->late->frames[i - 1];

		if (!frame->code->foreign && may_run(loop, frame))
			candidates[nr++] = (struct loop_candidate){
				.frame_addr = frame->addr,
				.code_start_addr = frame->code->code_start_addr,
				.code_end_addr = frame->code->code_end_addr,
			};
		if (frame->previous == loop->entry.caller_addr)
			break;
	}
	loop_places_vote(stack->places, &loop->frame, candidates, nr);
}

/* By the frame that called into C, of a loop that is not the innermost one. */
static void vote_caller(const struct dumped_stack *stack, const struct dumped_loop *loop,
			remote_addr frame_addr)
{
	for (uint32_t i = stack->late->nr_frames; i > 0; i--)
		if (stack->late->frames[i - 1].addr == frame_addr) {
			vote_upwards(stack, loop, i - 1, 1);
			return;
		}
}

void dumped_loops_learn(const struct dumped_stack *stack)
{
	struct dumped_loops loops;

	if (loop_places_wants_entries(stack->places))
		learn_entries(stack);
	if (!stack->places->entry_distance_bytes)
		return;
	dumped_loops_find(stack, &loops);
	for (uint32_t i = 0; !stack->places->lookup_addr && i < loops.nr; i++)
		stack->places->lookup_addr = loops.loops[i].lookup_addr;
	if (loops.nr && stack->late->nr_frames)
		vote_upwards(stack, &loops.loops[0], stack->late->nr_frames - 1, MAX_CANDIDATES);
	for (uint32_t i = 1; i < loops.nr; i++)
		vote_caller(stack, &loops.loops[i], loops.loops[i - 1].entry.previous);
}
