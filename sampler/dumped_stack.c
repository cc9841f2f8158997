/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_stack.h"

#include <errno.h>
#include <limits.h>

#include "sampler/dumped_loops.h"
#include "sampler/python/frame_walk.h"

/* Frames between two loops that are followed by their callers: of generators mostly. */
enum { MAX_CHAIN = 64 };

/* The data stack grows by chunks of 16 KiB or more: another one's frames are not near the last. */
enum { NEAR_BYTES = 16384 };

/*
 * A frame that is first in a new chunk lies so far into a page, wherever that is: behind the head
 * of the chunk (push_chunk(), Python/pystate.c).
 */
enum { PAGE_BYTES = 4096, CHUNK_HEAD_BYTES = 24 };

/* The next instruction is behind the one that runs, by a code unit at least. */
enum { CODE_UNIT_BYTES = 2 };

/* The frames of one loop, while they are looked for. */
struct activation {
	const struct dumped_stack *stack;
	struct frame_walk walk;
	remote_addr entry_addr;
	remote_addr caller_addr;     /* what the first one names as its caller */
	remote_addr leaf_addr;	     /* of the frame that the loop runs; 0: not known */
	remote_addr next_instr_addr; /* 0: not known */
	struct code *leaf_code;	     /* of that; NULL: likewise */
	bool is_lone;
	bool is_generator;    /* the first frame is a generator's */
	bool is_late_enough;  /* what the later look has of it is what it was */
	remote_addr top_addr; /* where the next frame of the data stack begins; 0: not known */
};

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

/*
 * Append a frame whose caller is known: of the loop's first one its entry is told. 0; -ENOENT (it
 * cannot be), -ENOMEM, …
 */
static int append(struct activation *activation, remote_addr addr, remote_addr previous,
		  const struct frame_words *words)
{
	struct frame_words running = *words;
	struct code *code;
	int err = walk_check(&activation->walk, &running, &code);

	if (err)
		return is_no_frame(err);
	/* It runs or calls in the copy, whatever it does by now. */
	running.previous = previous == activation->caller_addr ? activation->entry_addr : previous;
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
 * Whether a frame of the later look is called by that one, or, if that is the loop's caller, was
 * the first of such a loop.
 */
static bool is_called_by(const struct activation *activation, const struct walked_frame *frame,
			 remote_addr previous)
{
	return frame->previous == previous &&
	       (activation->walk.build->offsets.frame.is_entry == OFFSET_ABSENT ||
		frame->is_entry == (previous == activation->caller_addr));
}

/*
 * Append the frames between [top_addr, leaf_addr), which have to fill it and to call each
 * other. 0 and *ret_previous, the leaf's caller; -ENOENT: they do not.
 */
static int append_tiles(struct activation *activation, remote_addr *ret_previous)
{
	remote_addr previous = activation->caller_addr;
	remote_addr addr = activation->top_addr;

	while (addr && addr < activation->leaf_addr) {
		const struct walked_frame *frame = find_late(activation->stack, addr);
		int err = frame && is_called_by(activation, frame, previous)
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
	remote_addr previous = activation->caller_addr;
	uint32_t nr = 0;
	int err = 0;

	while (!is_called_by(activation, frame, activation->caller_addr)) {
		/* One that C has called is another loop's. */
		frame = frame->is_entry ? NULL : find_late(activation->stack, frame->previous);
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

/* Whether the frame that a loop runs is not on the data stack: then it is a generator's. */
static bool is_elsewhere(const struct activation *activation)
{
	const remote_addr addr = activation->leaf_addr;

	return addr && activation->top_addr &&
	       addr - (activation->top_addr - NEAR_BYTES) >= 2ull * NEAR_BYTES &&
	       addr % PAGE_BYTES != CHUNK_HEAD_BYTES;
}

/* Whether a frame, told already, is one of the later look that is steady. */
static bool is_steady(const struct dumped_stack *stack, const struct walked_frame *frame)
{
	const struct walked_frame *late = find_late(stack, frame->addr);

	return late && late->executable == frame->executable &&
	       steady_frames_has(stack->steady, (uint32_t)(late - stack->late->frames));
}

/*
 * Append the frames of the loop that are steady: what is steady was there at the instant, and what
 * a loop runs in the end has been called by all that it runs. *ret_previous is the last one, or
 * the caller of the first. 0, -ENOMEM, …
 */
static int append_steady(struct activation *activation, remote_addr *ret_previous)
{
	const struct dumped_stack *stack = activation->stack;
	const remote_addr leaf_addr = activation->leaf_addr;
	const bool is_near = leaf_addr && !is_elsewhere(activation);
	int err = 0;

	*ret_previous = activation->caller_addr;
	for (uint32_t i = 0;
	     !err && i < stack->late->nr_frames && steady_frames_has(stack->steady, i); i++) {
		const struct walked_frame *frame = &stack->late->frames[i];

		if (!is_called_by(activation, frame, *ret_previous))
			continue;
		if (frame->addr == leaf_addr || (is_near && frame->addr > leaf_addr))
			break;
		err = append_late(activation, frame, *ret_previous);
		if (!err)
			*ret_previous = frame->addr;
	}
	return err == -ENOENT ? 0 : err;
}

/* A hole in the place of the loop's frames that lead to the leaf, behind those that are steady. */
static int append_hole(struct activation *activation, remote_addr *ret_previous)
{
	struct frame_words words = {.owner = OWNED_BY_GENERATOR};
	remote_addr previous;
	int err = append_steady(activation, &previous);

	if (err)
		return err;
	words.previous = previous == activation->caller_addr ? activation->entry_addr : previous;
	*ret_previous = activation->caller_addr;
	return walk_append(&activation->walk, activation->entry_addr, &words,
			   activation->stack->hole);
}

/*
 * Whether the later look has another function in the leaf's place that has called others by then:
 * it is what has run there all along more likely than what came next.
 */
static bool is_anothers_place(const struct activation *activation)
{
	const struct frame_list *late = activation->stack->late;
	const struct walked_frame *frame = find_late(activation->stack, activation->leaf_addr);

	return frame && frame->code != activation->leaf_code &&
	       frame != &late->frames[late->nr_frames - 1];
}

/* Whether what is between may be told by where frames begin and end. */
static bool may_be_tiled(const struct activation *activation)
{
	return activation->leaf_addr && !activation->is_generator && !is_anothers_place(activation);
}

/*
 * Whether the frame that was appended last may have called the leaf: it does if its code names it.
 * 0; -ENOENT: it may not.
 */
static int check_call(const struct activation *activation)
{
	const struct dumped_stack *stack = activation->stack;
	const struct frame_list *list = activation->walk.list;
	const struct code *caller = list->nr_frames ? list->frames[list->nr_frames - 1].code : NULL;
	bool has;
	int err;

	/* The outermost function has no caller. */
	if (!caller)
		return 0;
	if (caller->foreign)
		return -ENOENT;
	err = call_names_has(stack->names, stack->codes, caller, activation->leaf_code, &has);
	return err || has ? err : -ENOENT;
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
	int err = -ENOENT;

	*ret_previous = activation->caller_addr;
	if (activation->is_lone)
		return 0;
	if (there)
		err = append_callers(activation, there, ret_previous);
	else if (may_be_tiled(activation))
		err = append_tiles(activation, ret_previous);
	if (!err && !there)
		err = check_call(activation);
	if (err != -ENOENT)
		return err;
	list->nr_frames = nr_frames;
	activation->top_addr = top_addr;
	++*ret_nr_holes;
	return append_hole(activation, ret_previous);
}

/*
 * Append the frames of a loop of which no instruction is known, by the later look, if that is to be
 * believed and leads from the leaf to the loop. *ret_nr_holes is one more if it does not.
 */
static int append_by_late(struct activation *activation, uint32_t *ret_nr_holes)
{
	struct frame_list *list = activation->walk.list;
	const struct walked_frame *there = find_late(activation->stack, activation->leaf_addr);
	const uint32_t nr_frames = list->nr_frames;
	remote_addr previous;
	int err = -ENOENT;

	if (there && activation->is_late_enough)
		err = append_callers(activation, there, &previous);
	if (!err)
		err = append_late(activation, there, previous);
	if (err != -ENOENT)
		return err;
	list->nr_frames = nr_frames;
	activation->top_addr = 0;
	++*ret_nr_holes;
	return append_hole(activation, &previous);
}

/* Append the leaf, a frame that nothing tells the address of: it gets one that is no frame's. */
static int append_nowhere(struct activation *activation, remote_addr previous,
			  const struct frame_words *leaf)
{
	return append(activation, activation->entry_addr + 1, previous, leaf);
}

/* Whether there were looks enough to tell what is steady. */
static bool has_settled(const struct dumped_stack *stack)
{
	return steady_frames_has(stack->steady, 0);
}

/* Whether a frame of the later look, a steady one, has called another one that is steady, too. */
static bool calls_steady(const struct dumped_stack *stack, const struct walked_frame *steady)
{
	const uint32_t next = (uint32_t)(steady - stack->late->frames) + 1;

	return next < stack->late->nr_frames &&
	       stack->late->frames[next].previous == steady->addr &&
	       steady_frames_has(stack->steady, next);
}

/*
 * Append the frames of a loop whose leaf's address and instruction are two frames': a steady one,
 * and what it is about to call, or has called, if it names that and no other call of it is steady, as
 * a module names all functions that it defines; else, and as long as it is not known what is steady,
 * there is a hole between.
 * Of a loop that has called another one the address is exact, and nothing runs above.
 */
static int append_around(struct activation *activation, const struct walked_frame *steady,
			 const struct frame_words *leaf, uint32_t *ret_nr_holes)
{
	const struct dumped_stack *stack = activation->stack;
	const bool has_called_loop = activation->is_late_enough;
	bool is_next = has_called_loop;
	remote_addr previous;
	int err = 0;

	if (!is_next && has_settled(stack) && !steady->code->foreign &&
	    !calls_steady(stack, steady))
		err = call_names_has(stack->names, stack->codes, steady->code,
				     activation->leaf_code, &is_next);
	if (err)
		return err;
	if (!is_next) {
		activation->leaf_addr = 0;
		++*ret_nr_holes;
		err = append_hole(activation, &previous);
		return err ? err : append_nowhere(activation, previous, leaf);
	}
	err = append_callers(activation, steady, &previous);
	if (!err)
		err = append_late(activation, steady, previous);
	return err || has_called_loop ? err : append_nowhere(activation, steady->addr, leaf);
}

/* Append the frames of one loop. Errors of dumped_stack_frames(). */
static int append_activation(struct activation *activation, uint32_t *ret_nr_holes)
{
	const struct dumped_stack *stack = activation->stack;
	const struct frame_words leaf = words_at(stack, activation->next_instr_addr);
	const struct walked_frame *there = find_late(stack, activation->leaf_addr);
	remote_addr previous;
	int err;

	if (!activation->next_instr_addr)
		return append_by_late(activation, ret_nr_holes);
	if (there && there->executable != leaf.executable) {
		if (!activation->is_lone && (is_steady(stack, there) ||
					     (!has_settled(stack) && !activation->is_late_enough)))
			return append_around(activation, there, &leaf, ret_nr_holes);
		there = NULL;
	}
	err = append_between(activation, there, &previous, ret_nr_holes);
	if (err)
		return err;
	return activation->leaf_addr ? append(activation, activation->leaf_addr, previous, &leaf)
				     : append_nowhere(activation, previous, &leaf);
}

/* Choosing between places. */

/*
 * The Python frame of the innermost loop: it lies behind those that are known, or is a
 * generator's, which the first place then has.
 */
static remote_addr choose_leaf(const struct activation *activation, const struct dumped_loop *loop)
{
	const struct loop_places *places = activation->stack->places;
	remote_addr addr, first_addr = 0;

	if (loop->entry.leaf_addr)
		return loop->entry.leaf_addr;
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

/* The code object that addr is in, if it was seen. 0, -ENOENT, or what ends the sampling. */
static int find_code(struct activation *activation, remote_addr addr, struct code **ret_code)
{
	struct frame_words words = words_at(activation->stack, addr);

	return words.executable ? is_no_frame(walk_check(&activation->walk, &words, ret_code))
				: -ENOENT;
}

/* The next instruction of a loop: the first place that has one. 0: none has. */
static int choose_next_instr(struct activation *activation, const struct dumped_loop *loop)
{
	const struct loop_places *places = activation->stack->places;
	remote_addr addr;
	int err = -ENOENT;

	for (uint32_t rank = 0; err == -ENOENT && rank < LOOP_PLACES_RANKS; rank++) {
		if (!loop_places_next_instr(places, &loop->frame, rank, &addr))
			continue;
		err = find_code(activation, addr, &activation->leaf_code);
		if (!err)
			activation->next_instr_addr = addr;
	}
	return err == -ENOENT ? 0 : err;
}

typedef bool place_reader(const struct loop_places *places, const struct loop_frame *frame,
			  uint32_t rank, remote_addr *ret_addr);

/* Whether some place of a loop has that value. */
static bool has_in_place(const struct dumped_stack *stack, const struct dumped_loop *loop,
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
static bool is_idle(const struct dumped_stack *stack, const struct dumped_loops *loops)
{
	const struct dumped_loop *inner = &loops->loops[0], *outer = &loops->loops[1];
	remote_addr addr;

	if (loops->nr && has_in_place(stack, inner, loop_places_frame, inner->entry_addr))
		return true;
	if (loops->nr < 2 || inner->frame.kind != LOOP_RUNS)
		return false;
	if (loop_places_frame(stack->places, &outer->frame, 0, &addr) &&
	    addr != inner->entry.previous)
		return true;
	return has_in_place(stack, inner, loop_places_frame, inner->entry.previous) &&
	       loop_places_next_instr(stack->places, &outer->frame, 0, &addr) &&
	       has_in_place(stack, inner, loop_places_next_instr, addr);
}

/* Where the outermost loop's first frame begins: by the later look, as nothing calls it. */
static remote_addr find_start(const struct dumped_stack *stack, const struct dumped_loop *outermost)
{
	const struct frame_list *late = stack->late;

	for (uint32_t i = 0; i < late->nr_frames; i++)
		if (late->frames[i].previous == outermost->entry.caller_addr)
			return late->frames[i].addr;
	return 0;
}

/*
 * Whether the frame that a loop runs is a generator's that it was called for. 3.11 calls the loop
 * for each of them; later versions run what they iterate over in the same loop, too.
 */
static bool runs_generator(const struct activation *activation, const struct dumped_loop *loop)
{
	const struct walked_frame *there;

	if (!is_elsewhere(activation))
		return false;
	there = find_late(activation->stack, activation->leaf_addr);
	return loop->entry.leaf_addr || (there && there->previous == activation->caller_addr);
}

static void find_generator(struct activation *activation, const struct dumped_loop *loop)
{
	struct generator_calls *calls = &activation->stack->places->generator_calls;
	const bool is_alone = runs_generator(activation, loop);

	if (is_alone && loop->return_addr)
		generator_calls_vote(calls, loop->return_addr);
	activation->is_lone = loop->is_lone || is_alone;
	activation->is_generator = generator_calls_has(calls, loop->return_addr);
}

/*
 * Note what is known of a loop; inner is the one that it has called or NULL. Its leaf is that which
 * the inner one's entry frame names. Else it is in its place, or, if the loop has not gone on
 * since, innermost by now still.
 */
static int begin_activation(struct activation *activation, const struct dumped_loop *loop,
			    const struct dumped_loop *inner)
{
	const struct frame_list *late = activation->stack->late;
	int err = 0;

	activation->entry_addr = loop->entry_addr;
	activation->caller_addr = loop->entry.caller_addr;
	activation->is_late_enough = inner || loop->is_in_jit;
	activation->leaf_addr = inner ? inner->entry.previous : choose_leaf(activation, loop);
	find_generator(activation, loop);
	activation->next_instr_addr = 0;
	activation->leaf_code = NULL;
	if (!loop->is_in_jit)
		err = choose_next_instr(activation, loop);
	if (err || activation->next_instr_addr || activation->is_late_enough || !late->nr_frames)
		return err;
	activation->is_late_enough = dumped_loops_is_still(activation->stack, loop);
	if (activation->is_late_enough)
		activation->leaf_addr = late->frames[late->nr_frames - 1].addr;
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
	struct dumped_loops loops;
	uint32_t nr_holes = 0;
	uint32_t first;
	int err = 0;

	if (!stack->places->entry_distance_bytes)
		return -EAGAIN;
	list->nr_known = 0;
	frame_list_begin(list, 0);
	dumped_loops_find(stack, &loops);
	first = is_idle(stack, &loops);
	if (loops.nr)
		activation.top_addr = find_start(stack, &loops.loops[loops.nr - 1]);
	for (uint32_t i = loops.nr; !err && i-- > first;) {
		const struct dumped_loop *loop = &loops.loops[i];

		err = begin_activation(&activation, loop, i > first ? loop - 1 : NULL);
		/* What runs no frame yet, or none any more, is told by its trampoline. */
		if (!err && (activation.next_instr_addr || i > 0 || !loop->is_lone))
			err = append_activation(&activation, &nr_holes);
	}
	*ret_nr_holes = nr_holes;
	return err;
}
