/* SPDX-License-Identifier: MIT */
#include "sampler/waiting_stack.h"

#include <errno.h>
#include <stdlib.h>

int waiting_stacks_init(struct waiting_stacks *waiting, struct remote_memory *memory,
			struct native_stacks *natives)
{
	*waiting = (struct waiting_stacks){.natives = natives};
	frame_pointers_init(&waiting->pointers, memory, natives->modules);
	return stack_window_init(&waiting->window, memory);
}

void waiting_stacks_done(struct waiting_stacks *waiting)
{
	stack_window_done(&waiting->window);
}

int waiting_loops_find(const struct loop_entry *entries, uint32_t nr_frames,
		       uint32_t distance_bytes, struct waiting_loops *ret_loops)
{
	struct waiting_loops loops = {.distance_bytes = distance_bytes};

	loops.addrs = reallocarray(NULL, nr_frames + 1ull, sizeof(*loops.addrs));
	if (!loops.addrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_frames; i++)
		if (entries[i].c_addr)
			loops.addrs[loops.nr++] = entries[i].c_addr;
	*ret_loops = loops;
	return 0;
}

static void unwind(struct waiting_stacks *waiting, const struct registers *registers)
{
	native_stacks_unwind(waiting->natives, registers, &waiting->window,
			     waiting->natives->max_frames);
	native_stacks_wait(waiting->natives);
}

/* The distance from an address to the end of the C frame that it is in; 0: it is in none. */
static uint64_t distance_in_frame(const struct native_stacks *natives, remote_addr addr)
{
	for (size_t i = 0; i < natives->nr_frames; i++) {
		const struct unwind_frame *frame = &natives->frames[i];

		if (addr >= frame->sp && addr < frame->cfa)
			return frame->cfa - addr;
	}
	return 0;
}

/* Whether all loops are in the stack, at one distance. */
static bool has_loops(const struct native_stacks *natives, const struct waiting_loops *loops)
{
	uint64_t distance_bytes = loops->distance_bytes;

	for (uint32_t i = 0; i < loops->nr; i++) {
		const uint64_t here_bytes = distance_in_frame(natives, loops->addrs[i]);

		if (!here_bytes || (distance_bytes && here_bytes != distance_bytes))
			return false;
		distance_bytes = here_bytes;
	}
	return true;
}

void waiting_stacks_unwind(struct waiting_stacks *waiting, const struct task_place *place,
			   const struct waiting_loops *loops)
{
	const struct native_stacks *natives = waiting->natives;
	struct registers registers = {.is_interrupted = true};
	struct registers with_pointer;
	uint64_t pointer;

	registers_set(&registers, REGISTER_SP, place->sp_addr);
	registers_set(&registers, REGISTER_PC, place->pc_addr);
	stack_window_forget(&waiting->window);
	unwind(waiting, &registers);
	if (natives->is_whole ||
	    frame_pointers_find(&waiting->pointers, &natives->registers[natives->nr_frames - 1],
				&pointer))
		return;
	/* Nothing on the way there has saved it, so all that is the innermost frame's. */
	with_pointer = registers;
	registers_set(&with_pointer, REGISTER_FRAME_POINTER, pointer);
	unwind(waiting, &with_pointer);
	if (!natives->is_whole || !has_loops(natives, loops))
		unwind(waiting, &registers);
}
