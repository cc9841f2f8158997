/* SPDX-License-Identifier: MIT */
#include "sampler/own_stack.h"

/* No stack is smaller (PTHREAD_STACK_MIN), control block and thread-local variables included. */
enum { LEAST_BYTES = 16384 };

enum { PAGE_BYTES = 4096, PAGES_OF_A_READ = 64, MAX_READS = 16 };

struct own_stack own_stack_of(uint64_t thread_id)
{
	if (thread_id < LEAST_BYTES)
		return (struct own_stack){0};
	return (struct own_stack){.low_addr = thread_id - LEAST_BYTES, .end_addr = thread_id};
}

/* Go down to addr, over so many pages as one call reads. False: one of them is not the stack's. */
static bool go_down(struct own_stack *stack, struct remote_memory *memory, remote_addr addr)
{
	struct remote_range ranges[PAGES_OF_A_READ];
	uint8_t bytes[PAGES_OF_A_READ];
	remote_addr page_addr = (stack->low_addr - 1) & ~(remote_addr)(PAGE_BYTES - 1);
	size_t nr = 0;

	for (; nr < PAGES_OF_A_READ && page_addr + PAGE_BYTES > addr; page_addr -= PAGE_BYTES, nr++)
		ranges[nr] =
			(struct remote_range){.addr = page_addr, .buffer = &bytes[nr], .size = 1};
	for (size_t i = 0; i < nr; i++)
		ranges[i].nr_with_it = nr - 1 - i;
	if (remote_memory_read_ranges(memory, ranges, nr))
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!ranges[i].done_bytes)
			return false;
		stack->low_addr = ranges[i].addr;
	}
	return true;
}

bool own_stack_has(struct own_stack *stack, struct remote_memory *memory, remote_addr addr)
{
	if (!stack->end_addr)
		return true;
	if (!addr || addr >= stack->end_addr)
		return false;
	for (int i = 0; i < MAX_READS && addr < stack->low_addr; i++)
		if (!go_down(stack, memory, addr))
			return false;
	return addr >= stack->low_addr;
}
