/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_stack.h"

#include <stdio.h>
#include <stdlib.h>

void fake_stack_init(struct fake_stack *stack, struct fake_python *py, uint64_t tid,
		     uint64_t chunk_bytes)
{
	*stack = (struct fake_stack){.py = py, .thread_addr = fake_python_thread(py, tid)};
	stack->previous_addr = fake_python_base(py, stack->thread_addr);
	if (chunk_bytes) {
		stack->chunk_addr = fake_python_chunk(py, 0, chunk_bytes);
		stack->next_addr = stack->chunk_addr + py->build.offsets.chunk.data + 8;
	}
	fake_stack_call_c(stack);
}

static void set_stacktop(struct fake_stack *stack, remote_addr frame_addr, int32_t stacktop)
{
	uint32_t offset = stack->py->build.offsets.frame.stacktop;

	if (frame_addr && offset != OFFSET_ABSENT)
		fake_memory_write_u32(&stack->py->fake, frame_addr + offset, (uint32_t)stacktop);
}

/* Write the frame of a new call. */
static void enter(struct fake_stack *stack, remote_addr addr, remote_addr code_addr, uint8_t owner)
{
	const struct fake_frame frame = {
		.executable = code_addr,
		.previous = stack->previous_addr,
		.unit = 1,
		.stacktop = FAKE_EXECUTING,
		.owner = owner,
		.is_entry = stack->entered,
	};

	if (stack->nr_expected == FAKE_STACK_MAX_FRAMES) {
		(void)fputs("fake_stack: too many frames\n", stderr);
		abort();
	}
	/* A caller that is inside C counts as executing. */
	if (!stack->entered)
		set_stacktop(stack, stack->caller_addr, FAKE_SUSPENDED);
	fake_python_frame(stack->py, addr, &frame);
	stack->previous_addr = addr;
	stack->caller_addr = addr;
	stack->entered = false;
	stack->expected[stack->nr_expected++] = addr;
}

remote_addr fake_stack_call(struct fake_stack *stack, remote_addr code_addr, uint32_t frame_words)
{
	remote_addr addr = stack->next_addr;

	enter(stack, addr, code_addr, OWNED_BY_THREAD);
	stack->next_addr += 8ull * frame_words;
	return addr;
}

void fake_stack_call_c(struct fake_stack *stack)
{
	struct fake_python *py = stack->py;
	const struct fake_frame shim = {
		.executable = py->none_addr,
		.previous = stack->previous_addr,
		.owner = FAKE_SHIM_OWNER,
	};

	stack->entered = true;
	if (py->build.traits.shim_owner == UINT8_MAX)
		return;
	py->stack_addr -= (py->build.offsets.frame.size + 15) & ~15ull;
	stack->previous_addr = py->stack_addr;
	(void)fake_memory_map(&py->fake, py->stack_addr, py->build.offsets.frame.size);
	fake_python_frame(py, stack->previous_addr, &shim);
}

remote_addr fake_stack_resume(struct fake_stack *stack, remote_addr code_addr)
{
	remote_addr addr = fake_python_alloc(stack->py, stack->py->build.offsets.frame.size);

	enter(stack, addr, code_addr, OWNED_BY_GENERATOR);
	return addr;
}

remote_addr fake_stack_link(struct fake_stack *stack, remote_addr executable, uint8_t owner)
{
	remote_addr addr = fake_python_alloc(stack->py, stack->py->build.offsets.frame.size);

	stack->entered = true;
	enter(stack, addr, executable, owner);
	return addr;
}

void fake_stack_new_chunk(struct fake_stack *stack, uint64_t chunk_bytes)
{
	const struct py_offsets *offsets = &stack->py->build.offsets;
	uint64_t words = (stack->next_addr - stack->chunk_addr - offsets->chunk.data) / 8;

	fake_memory_write_u64(&stack->py->fake, stack->chunk_addr + offsets->chunk.top, words);
	stack->chunk_addr = fake_python_chunk(stack->py, stack->chunk_addr, chunk_bytes);
	stack->next_addr = stack->chunk_addr + offsets->chunk.data;
}

void fake_stack_finish(struct fake_stack *stack)
{
	fake_python_set_stack(stack->py, stack->thread_addr, stack->chunk_addr, stack->next_addr,
			      stack->previous_addr);
}

void fake_stack_pop(struct fake_stack *stack, remote_addr frame_addr, remote_addr caller_addr)
{
	const struct py_offsets *offsets = &stack->py->build.offsets;

	if (offsets->frame.stacktop == OFFSET_ABSENT)
		fake_memory_write_u64(&stack->py->fake, frame_addr + offsets->frame.executable, 0);
	set_stacktop(stack, frame_addr, 0);
	set_stacktop(stack, caller_addr, FAKE_EXECUTING);
	stack->nr_expected--;
	stack->previous_addr = caller_addr;
	stack->caller_addr = caller_addr;
	if (frame_addr - stack->chunk_addr < 1 << 20 && frame_addr > stack->chunk_addr)
		stack->next_addr = frame_addr;
}
