/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_stack.h"

#include <signal.h>

/*
 * How much of a stack is searched for content, page by page. One page is not enough: a guard page
 * inside the stack's own mapping is all zeros, and a large frame can be, too.
 */
enum { SEARCHED_BYTES = 16384, PAGE_BYTES = 4096 };

/* Whether two addresses are close enough to be in one frame. */
static bool is_near(remote_addr a, remote_addr b)
{
	return (a > b ? a - b : b - a) <= CORE_STACK_MAX_FRAME_BYTES;
}

/*
 * Returns the stack that contains sp_addr, or the nearby one above it if only guard pages are
 * between. NULL if there is none.
 */
static const struct mapping *find_stack(const struct core *core, remote_addr sp_addr)
{
	const struct maps *maps = &core->maps;
	size_t i = maps_search(maps, sp_addr);

	while (i < maps->nr_mappings && !maps->mappings[i].writable)
		i++;
	if (i == maps->nr_mappings)
		return NULL;
	return maps->mappings[i].start <= sp_addr || is_near(maps->mappings[i].start, sp_addr)
		       ? &maps->mappings[i]
		       : NULL;
}

/* Whether the core has a non-zero byte in [start, end), within the first SEARCHED_BYTES. */
static bool has_content(struct core *core, remote_addr start, remote_addr end)
{
	const remote_addr search_end = end - start < SEARCHED_BYTES ? end : start + SEARCHED_BYTES;
	uint8_t bytes[PAGE_BYTES] = {0};

	for (remote_addr addr = start; addr < search_end; addr += PAGE_BYTES) {
		struct remote_range range = {.addr = addr, .buffer = bytes, .size = PAGE_BYTES};

		if (search_end - addr < PAGE_BYTES)
			range.size = search_end - addr;
		if (remote_memory_read_ranges(core_memory(core), &range, 1))
			return false;
		for (size_t i = 0; i < range.done_bytes; i++)
			if (bytes[i])
				return true;
	}
	return false;
}

enum core_stack_state core_stack_find_state(struct core *core, const struct core_thread *thread)
{
	const struct mapping *stack = find_stack(core, thread->sp_addr);

	if (!stack)
		return CORE_STACK_UNMAPPED;
	return has_content(core, thread->sp_addr > stack->start ? thread->sp_addr : stack->start,
			   stack->end)
		       ? CORE_STACK_SAVED
		       : CORE_STACK_MISSING;
}

bool core_stack_overflowed(const struct core *core, const struct core_death *death,
			   remote_addr sp_addr)
{
	const struct mapping *stack;

	if (death->signal != SIGSEGV || !death->has_addr || !is_near(death->addr, sp_addr))
		return false;
	stack = find_stack(core, sp_addr);
	if (!stack)
		return false;
	/*
	 * Guard pages made with madvise() are inside the stack's own mapping, but fault as
	 * unmapped.
	 */
	return death->addr < stack->start ||
	       (death->addr < stack->end && death->code != SEGV_ACCERR);
}
