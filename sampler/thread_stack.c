/* SPDX-License-Identifier: MIT */
#include "sampler/thread_stack.h"

#include <string.h>

/* The smallest stack (PTHREAD_STACK_MIN). */
enum { MIN_STACK_BYTES = 16384 };

/* Distance below the known part that is read to see whether it is the same stack. */
enum { NEAR_BYTES = 256 << 10 };

/* How far above the wanted address a control block is searched for, and in what pieces. */
enum { SEARCHED_BYTES = 2 << 20, PIECE_BYTES = 32 << 10 };

/* The part of a control block that is checked: it has its own address at both ends. */
enum { CONTROL_BYTES = 24, CONTROL_SELF_OFFSET = 16 };

struct thread_stack thread_stack_of_id(uint64_t thread_id)
{
	if (thread_id < MIN_STACK_BYTES)
		return (struct thread_stack){0};
	return (struct thread_stack){.low_addr = thread_id - MIN_STACK_BYTES,
				     .end_addr = thread_id};
}

/* Whether the kernel names the mapping as the first thread's stack. */
static bool is_first_stack(const struct mapping *mapping)
{
	return strcmp(mapping->path, "[stack]") == 0;
}

struct thread_stack thread_stack_of_first(const struct maps *maps)
{
	for (size_t i = maps->nr_mappings; i-- > 0;)
		if (is_first_stack(&maps->mappings[i]))
			return (struct thread_stack){.low_addr = maps->mappings[i].start,
						     .end_addr = maps->mappings[i].end};
	return (struct thread_stack){0};
}

/*
 * Search [addr, end_addr) for the control block that ends a stack, also of an unknown thread: it
 * holds its own address twice. That is so on x86-64 with glibc only. *ret_found_addr is 0 if
 * there is none. Returns false if something could not be read.
 */
static bool find_control(struct remote_memory *memory, remote_addr addr, remote_addr end_addr,
			 remote_addr *ret_found_addr)
{
	uint8_t bytes[PIECE_BYTES];

	*ret_found_addr = 0;
	for (addr &= ~15ull; !*ret_found_addr && addr < end_addr; addr += PIECE_BYTES - 2 * 16) {
		const uint64_t left_bytes = end_addr - addr;
		const size_t size = left_bytes < PIECE_BYTES ? (size_t)left_bytes : PIECE_BYTES;

		if (remote_memory_read(memory, addr, bytes, size))
			return false;
		for (size_t i = 0; !*ret_found_addr && i + CONTROL_BYTES <= size; i += 16)
			if (field_u64(bytes, i) == addr + i &&
			    field_u64(bytes, i + CONTROL_SELF_OFFSET) == addr + i)
				*ret_found_addr = addr + i;
	}
	return true;
}

enum stack_owner thread_stack_owner(struct thread_stack *stack, struct remote_memory *memory,
				    remote_addr addr)
{
	remote_addr found_addr;

	stack->pending_addr = 0;
	if (addr >= stack->low_addr && addr < stack->end_addr)
		return STACK_OWN;
	if (addr >= stack->other_low_addr && addr < stack->other_end_addr)
		return stack->other_owner;
	stack->pending_addr = addr;
	if (addr >= stack->low_addr || stack->low_addr - addr > NEAR_BYTES)
		return STACK_UNKNOWN;
	/* If the thread's own control block holds its address, so do those of other threads. */
	if (!stack->has_self_addr &&
	    find_control(memory, stack->end_addr, stack->end_addr + CONTROL_BYTES, &found_addr))
		stack->has_self_addr = found_addr == stack->end_addr;
	/*
	 * It is the thread's if it is a little below the known part, and no control block is
	 * between or across the end.
	 */
	if (stack->has_self_addr &&
	    find_control(memory, addr, stack->low_addr + CONTROL_BYTES, &found_addr) &&
	    !found_addr) {
		stack->low_addr = addr;
		stack->pending_addr = 0;
		return STACK_OWN;
	}
	return STACK_UNKNOWN;
}

/* The pthread_t that ends the stack of addr in that mapping; 0: unknown. */
static remote_addr find_end(const struct stack_context *context, const struct mapping *mapping,
			    remote_addr addr)
{
	remote_addr known_addr = 0, found_addr, end_addr;

	for (size_t i = 0; i < context->nr_thread_ids; i++) {
		const uint64_t thread_id = context->thread_ids[i];

		if (thread_id > addr && thread_id < mapping->end &&
		    (!known_addr || thread_id < known_addr))
			known_addr = thread_id;
	}
	end_addr = known_addr ? known_addr : mapping->end;
	if (end_addr - addr > SEARCHED_BYTES)
		end_addr = addr + SEARCHED_BYTES;
	(void)find_control(context->memory, addr, end_addr, &found_addr);
	return found_addr ? found_addr : known_addr;
}

static void set_other(struct thread_stack *stack, remote_addr low_addr, remote_addr end_addr,
		      enum stack_owner owner)
{
	stack->other_low_addr = low_addr;
	stack->other_end_addr = end_addr;
	stack->other_owner = owner;
	stack->has_unknown_stack = stack->has_unknown_stack || owner == STACK_UNKNOWN;
}

void thread_stack_resolve(struct thread_stack *stack, const struct stack_thread *thread,
			  const struct stack_context *context)
{
	const remote_addr addr = stack->pending_addr;
	const struct mapping *mapping = maps_find(context->maps, addr);
	remote_addr end_addr;

	stack->pending_addr = 0;
	if (!addr || !mapping)
		return;
	/* The first thread's stack, as far as it has grown. */
	if (is_first_stack(mapping)) {
		if (!thread->is_main) {
			set_other(stack, mapping->start, mapping->end,
				  thread->is_other ? STACK_FOREIGN : STACK_UNKNOWN);
			return;
		}
		stack->low_addr = mapping->start;
		stack->end_addr = mapping->end;
		stack->has_self_addr = false;
		return;
	}
	end_addr = find_end(context, mapping, addr);
	/* Another stack may end below addr. */
	if (end_addr && end_addr == thread->thread_id) {
		stack->low_addr = addr;
		stack->end_addr = end_addr;
	} else if (end_addr && end_addr != context->main_thread_id) {
		set_other(stack, addr, end_addr, STACK_FOREIGN);
	} else {
		set_other(stack, addr, end_addr ? end_addr : mapping->end, STACK_UNKNOWN);
	}
}
