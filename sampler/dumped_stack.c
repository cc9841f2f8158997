/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_stack.h"

#include <errno.h>
#include <limits.h>

#include "sampler/entry_frame.h"
#include "sampler/python/frame_walk.h"

/* Frames of a stack's end that are taken for the one that runs, while that is learnt. */
enum { MAX_CANDIDATES = 32 };

/* Frames between two loops that are followed by their callers: of generators mostly. */
enum { MAX_CHAIN = 64 };

/* The data stack grows by chunks of 16 KiB or more: another one's frames are not near the last. */
enum { NEAR_BYTES = 16384 };

/* The next instruction is behind the one that runs, by a code unit at least. */
enum { CODE_UNIT_BYTES = 2 };

/* One call of the loop. */
struct loop {
	struct loop_frame frame;
	remote_addr entry_addr;
	remote_addr lookup_addr; /* of the call that it is in; 0: it is the innermost C frame */
	remote_addr previous;	 /* the Python frame that called into C; 0 of the outermost one */
	bool is_lone; /* called through a trampoline: then it runs one frame and no other */
};

struct loops {
	struct loop loops[DUMPED_STACK_MAX_LOOPS]; /* innermost first */
	uint32_t nr;
};

/* The frames of one loop, while they are looked for. */
struct activation {
	const struct dumped_stack *stack;
	struct frame_walk walk;
	remote_addr entry_addr;
	remote_addr leaf_addr;	     /* of the frame that the loop runs; 0: not known */
	remote_addr next_instr_addr; /* 0: not known */
	bool is_lone;
	remote_addr top_addr; /* where the next frame of the data stack begins; 0: not known */
};

/* Loops. */

static const struct py_offsets *offsets_of(const struct dumped_stack *stack)
{
	return &stack->codes->build->offsets;
}

/* Note what of a C frame is none of its loop's. */
static void find_others(const struct dumped_stack *stack, remote_addr lookup_addr,
			struct loop_frame *frame)
{
	const remote_addr entry_addr = frame->cfa - stack->places->entry_distance_bytes;
	const struct cfi_section *section;
	const struct unwind_rule *rule =
		unwind_modules_find(stack->natives->modules, lookup_addr, &section);

	frame->other_addrs[frame->nr_others++] = entry_addr + offsets_of(stack)->frame.previous;
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
		.is_innermost = index == 0,
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
static void find_outer_instr(const struct dumped_stack *stack, struct loops *loops)
{
	remote_addr addr;

	if (loops->nr > 1 &&
	    loop_places_next_instr(stack->places, &loops->loops[1].frame, 0, &addr))
		loops->loops[0].frame.outer_instr_addr = addr;
}

static void find_loops(const struct dumped_stack *stack, struct loops *loops)
{
	const uint32_t distance_bytes = stack->places->entry_distance_bytes;

	loops->nr = 0;
	for (size_t i = 0; i < stack->natives->nr_frames && loops->nr < DUMPED_STACK_MAX_LOOPS;
	     i++) {
		struct loop *loop = &loops->loops[loops->nr];

		loop->frame = loop_frame(stack, i);
		loop->entry_addr = loop->frame.cfa - distance_bytes;
		if (loop->frame.cfa && loop->entry_addr >= loop->frame.sp &&
		    loop->entry_addr < loop->frame.cfa &&
		    entry_frame_read(stack->codes, stack->window, loop->entry_addr,
				     &loop->previous)) {
			if (i > 0)
				loop->lookup_addr = stack->natives->frames[i].lookup_addr;
			find_others(stack, stack->natives->frames[i].lookup_addr, &loop->frame);
			loop->is_lone = is_trampoline(stack, i + 1);
			loops->nr++;
		}
	}
	find_outer_instr(stack, loops);
}

/* Learning. */

/* The C frame that addr lies in; false: there is none. */
static bool find_native(const struct dumped_stack *stack, remote_addr addr,
			struct loop_frame *ret_frame)
{
	for (size_t i = 0; i < stack->natives->nr_frames; i++) {
		*ret_frame = loop_frame(stack, i);
		if (addr >= ret_frame->sp && addr < ret_frame->cfa)
			return true;
	}
	return false;
}

/* By what frames of the later look were called by. Loops that are older than the copy are in both. */
static void learn_entries(const struct dumped_stack *stack)
{
	for (uint32_t i = 0; i < stack->late->nr_frames; i++) {
		const remote_addr addr = stack->late->frames[i].previous;
		struct loop_frame frame;
		remote_addr previous;

		if (find_native(stack, addr, &frame) &&
		    entry_frame_read(stack->codes, stack->window, addr, &previous))
			loop_places_vote_entry(stack->places, &frame, addr);
	}
}

/* Vote by the frames of one loop that the later look has, up to the one at index. */
static void vote_upwards(const struct dumped_stack *stack, const struct loop *loop, uint32_t index,
			 uint32_t nr_candidates)
{
	for (uint32_t i = index + 1; i > 0 && nr_candidates-- > 0; i--) {
		const struct walked_frame *frame = &stack->late->frames[i - 1];

		if (!frame->code->foreign)
			loop_places_vote(stack->places, &loop->frame, frame->addr,
					 frame->code->code_start_addr, frame->code->code_end_addr);
		if (frame->previous == loop->entry_addr)
			break;
	}
}

/* By the frame that called into C, of a loop that is not the innermost one. */
static void vote_caller(const struct dumped_stack *stack, const struct loop *loop,
			remote_addr frame_addr)
{
	for (uint32_t i = stack->late->nr_frames; i > 0; i--)
		if (stack->late->frames[i - 1].addr == frame_addr) {
			vote_upwards(stack, loop, i - 1, 1);
			return;
		}
}

void dumped_stack_learn(const struct dumped_stack *stack)
{
	struct loops loops;

	if (!stack->places->entry_distance_bytes)
		learn_entries(stack);
	if (!stack->places->entry_distance_bytes)
		return;
	find_loops(stack, &loops);
	for (uint32_t i = 0; !stack->places->lookup_addr && i < loops.nr; i++)
		stack->places->lookup_addr = loops.loops[i].lookup_addr;
	if (loops.nr && stack->late->nr_frames)
		vote_upwards(stack, &loops.loops[0], stack->late->nr_frames - 1, MAX_CANDIDATES);
	for (uint32_t i = 1; i < loops.nr; i++)
		vote_caller(stack, &loops.loops[i], loops.loops[i - 1].previous);
}

/* Frames. */

/* What does not fit together is no error of the whole: -ENOENT. */
static int is_no_frame(int err)
{
	return err == -EBADMSG || err == -EFAULT ? -ENOENT : err;
}

/* The frame at addr of the later look; NULL: there is none. Inner ones are asked for most. */
static const struct walked_frame *find_late(const struct dumped_stack *stack, remote_addr addr)
{
	const struct frame_list *late = stack->late;

	for (uint32_t i = late->nr_frames; i > 0; i--)
		if (late->frames[i - 1].addr == addr)
			return &late->frames[i - 1];
	return NULL;
}

/*
 * What is known of the frame whose next instruction that is; without executable it is in no code
 * that was seen. One that has just begun has the first instruction for its next one.
 */
static struct frame_words words_at(const struct dumped_stack *stack, remote_addr next_instr_addr)
{
	return (struct frame_words){
		.executable = code_index_find(stack->index, next_instr_addr),
		.instr_ptr = next_instr_addr - CODE_UNIT_BYTES,
		.owner = OWNED_BY_THREAD,
	};
}

/* Append a frame whose caller is known. 0; -ENOENT (it cannot be), -ENOMEM, … */
static int append(struct activation *activation, remote_addr addr, remote_addr previous,
		  const struct frame_words *words)
{
	struct frame_words running = *words;
	struct code *code;
	int err = walk_check(&activation->walk, &running, &code);

	if (err)
		return is_no_frame(err);
	/* It runs or calls in the copy, whatever it does by now. */
	running.previous = previous;
	running.stacktop = INT_MAX;
	err = walk_append(&activation->walk, addr, &running, code);
	if (err)
		return is_no_frame(err);
	/* Those of generators are elsewhere. */
	if (!activation->top_addr ||
	    (addr >= activation->top_addr && addr - activation->top_addr < NEAR_BYTES))
		activation->top_addr = addr + code->frame_size_bytes;
	return 0;
}

static int append_late(struct activation *activation, const struct walked_frame *frame,
		       remote_addr previous)
{
	const struct frame_words words = {.executable = frame->executable,
					  .instr_ptr = frame->instr_ptr,
					  .owner = OWNED_BY_THREAD};

	return frame->code->foreign ? -ENOENT : append(activation, frame->addr, previous, &words);
}

/*
 * Append the frames between [top_addr, leaf_addr), which have to fill it and to call each
 * other. 0 and *ret_previous, the leaf's caller; -ENOENT: they do not.
 */
static int append_tiles(struct activation *activation, remote_addr *ret_previous)
{
	remote_addr previous = activation->entry_addr;
	remote_addr addr = activation->top_addr;

	while (addr && addr < activation->leaf_addr) {
		const struct walked_frame *frame = find_late(activation->stack, addr);
		int err = frame && frame->previous == previous
				  ? append_late(activation, frame, previous)
				  : -ENOENT;

		if (err)
			return err;
		previous = addr;
		addr = activation->top_addr > addr ? activation->top_addr : 0;
	}
	*ret_previous = previous;
	return addr == activation->leaf_addr ? 0 : -ENOENT;
}

/* The same by following callers from the leaf on, which has to be there still. */
static int append_callers(struct activation *activation, const struct walked_frame *leaf,
			  remote_addr *ret_previous)
{
	const struct walked_frame *chain[MAX_CHAIN];
	const struct walked_frame *frame = leaf;
	remote_addr previous = activation->entry_addr;
	uint32_t nr = 0;
	int err = 0;

	while (frame->previous != activation->entry_addr) {
		frame = find_late(activation->stack, frame->previous);
		if (!frame || nr == MAX_CHAIN)
			return -ENOENT;
		chain[nr++] = frame;
	}
	while (!err && nr-- > 0) {
		err = append_late(activation, chain[nr], previous);
		previous = chain[nr]->addr;
	}
	*ret_previous = previous;
	return err;
}

/* A hole in the place of the loop's frames that lead to the leaf. */
static int append_hole(struct activation *activation, remote_addr *ret_previous)
{
	const struct frame_words words = {.previous = activation->entry_addr,
					  .owner = OWNED_BY_GENERATOR};

	*ret_previous = activation->entry_addr;
	return walk_append(&activation->walk, activation->entry_addr, &words,
			   activation->stack->hole);
}

/*
 * Append what is between the loop's entry and its leaf; *ret_nr_holes is one more if that is
 * not known. there is the leaf in the later look; NULL: it is not there any more.
 */
static int append_between(struct activation *activation, const struct walked_frame *there,
			  remote_addr *ret_previous, uint32_t *ret_nr_holes)
{
	struct frame_list *list = activation->walk.list;
	const uint32_t nr_frames = list->nr_frames;
	const remote_addr top_addr = activation->top_addr;
	int err;

	*ret_previous = activation->entry_addr;
	if (activation->is_lone)
		return 0;
	err = activation->leaf_addr ? append_tiles(activation, ret_previous) : -ENOENT;
	if (err == -ENOENT && there) {
		list->nr_frames = nr_frames;
		activation->top_addr = top_addr;
		err = append_callers(activation, there, ret_previous);
	}
	if (err != -ENOENT)
		return err;
	list->nr_frames = nr_frames;
	activation->top_addr = top_addr;
	++*ret_nr_holes;
	return append_hole(activation, ret_previous);
}

/* Append the frames of one loop. Errors of dumped_stack_frames(). */
static int append_activation(struct activation *activation, uint32_t *ret_nr_holes)
{
	const struct dumped_stack *stack = activation->stack;
	const struct frame_words leaf = words_at(stack, activation->next_instr_addr);
	const struct walked_frame *there = find_late(stack, activation->leaf_addr);
	remote_addr previous;
	int err;

	if (!activation->next_instr_addr) {
		activation->top_addr = 0;
		++*ret_nr_holes;
		return append_hole(activation, &previous);
	}
	if (there && there->executable != leaf.executable)
		there = NULL;
	err = append_between(activation, there, &previous, ret_nr_holes);
	if (err)
		return err;
	/* Where it is not known it gets an address that is no frame's. */
	return append(activation,
		      activation->leaf_addr ? activation->leaf_addr : activation->entry_addr + 1,
		      previous, &leaf);
}

/* Choosing between places. */

/*
 * The Python frame of the innermost loop: it lies behind those that are known, or is a
 * generator's, which the first place then has.
 */
static remote_addr choose_leaf(const struct activation *activation, const struct loop *loop)
{
	const struct loop_places *places = activation->stack->places;
	remote_addr addr, first_addr = 0;

	for (uint32_t rank = 0; rank < LOOP_PLACES_RANKS; rank++) {
		if (!loop_places_frame(places, &loop->frame, rank, &addr))
			continue;
		if (addr >= activation->top_addr && addr - activation->top_addr < NEAR_BYTES)
			return addr;
		if (!first_addr)
			first_addr = addr;
	}
	return first_addr;
}

/* Whether addr is in a code object that was seen. 0, -ENOENT, or what ends the sampling. */
static int check_next_instr(struct activation *activation, remote_addr addr)
{
	struct frame_words words = words_at(activation->stack, addr);
	struct code *code;

	return words.executable ? is_no_frame(walk_check(&activation->walk, &words, &code))
				: -ENOENT;
}

/* The next instruction of a loop: the first place that has one. 0: none has. */
static int choose_next_instr(struct activation *activation, const struct loop *loop,
			     remote_addr *ret_addr)
{
	const struct loop_places *places = activation->stack->places;
	remote_addr addr;
	int err = -ENOENT;

	*ret_addr = 0;
	for (uint32_t rank = 0; err == -ENOENT && rank < LOOP_PLACES_RANKS; rank++) {
		if (!loop_places_next_instr(places, &loop->frame, rank, &addr))
			continue;
		err = check_next_instr(activation, addr);
		if (!err)
			*ret_addr = addr;
	}
	return err == -ENOENT ? 0 : err;
}

typedef bool place_reader(const struct loop_places *places, const struct loop_frame *frame,
			  uint32_t rank, remote_addr *ret_addr);

/* Whether some place of a loop has that value. */
static bool has_in_place(const struct dumped_stack *stack, const struct loop *loop,
			 place_reader *read, remote_addr wanted_addr)
{
	remote_addr addr;

	for (uint32_t rank = 0; rank < LOOP_PLACES_RANKS; rank++)
		if (read(stack->places, &loop->frame, rank, &addr) && addr == wanted_addr)
			return true;
	return false;
}

/*
 * Whether the innermost loop runs no Python frame: it is about to return, and its own entry
 * frame is what it runs; or it is being called. Then its C frame has what an older call left
 * there, whose entry frame mostly names another caller than the next loop runs; or its registers
 * are still those of the next loop.
 */
static bool is_idle(const struct dumped_stack *stack, const struct loops *loops)
{
	const struct loop *inner = &loops->loops[0], *outer = &loops->loops[1];
	remote_addr addr;

	if (loops->nr && has_in_place(stack, inner, loop_places_frame, inner->entry_addr))
		return true;
	if (loops->nr < 2 || !inner->frame.is_innermost)
		return false;
	if (loop_places_frame(stack->places, &outer->frame, 0, &addr) && addr != inner->previous)
		return true;
	return has_in_place(stack, inner, loop_places_frame, inner->previous) &&
	       loop_places_next_instr(stack->places, &outer->frame, 0, &addr) &&
	       has_in_place(stack, inner, loop_places_next_instr, addr);
}

/* Where the outermost loop's first frame begins: by the later look, as nothing calls it. */
static remote_addr find_start(const struct dumped_stack *stack, const struct loop *outermost)
{
	const struct frame_list *late = stack->late;

	for (uint32_t i = 0; i < late->nr_frames; i++)
		if (late->frames[i].previous == outermost->entry_addr)
			return late->frames[i].addr;
	return 0;
}

int dumped_stack_frames(const struct dumped_stack *stack, struct frame_list *list,
			uint32_t *ret_nr_holes)
{
	struct activation activation = {
		.stack = stack,
		.walk = {.build = stack->codes->build,
			 .codes = stack->codes,
			 .clock = stack->clock,
			 .list = list},
	};
	struct loops loops;
	uint32_t nr_holes = 0;
	uint32_t first;
	int err = 0;

	if (!stack->places->entry_distance_bytes)
		return -EAGAIN;
	list->nr_known = 0;
	list->walked.tick = 0;
	frame_list_begin(list);
	find_loops(stack, &loops);
	first = is_idle(stack, &loops);
	if (loops.nr)
		activation.top_addr = find_start(stack, &loops.loops[loops.nr - 1]);
	for (uint32_t i = loops.nr; !err && i-- > first;) {
		const struct loop *loop = &loops.loops[i];

		activation.entry_addr = loop->entry_addr;
		activation.is_lone = loop->is_lone;
		activation.leaf_addr =
			i > first ? loops.loops[i - 1].previous : choose_leaf(&activation, loop);
		err = choose_next_instr(&activation, loop, &activation.next_instr_addr);
		/* What runs no frame yet, or none any more, is told by its trampoline. */
		if (!err && (activation.next_instr_addr || i > 0 || !loop->is_lone))
			err = append_activation(&activation, &nr_holes);
	}
	*ret_nr_holes = nr_holes;
	return err;
}
