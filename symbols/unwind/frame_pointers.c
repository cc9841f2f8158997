/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/frame_pointers.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "symbols/unwind/stack_depth.h"

void frame_pointers_init(struct frame_pointers *pointers, struct remote_memory *memory,
			 struct unwind_modules *modules)
{
	*pointers = (struct frame_pointers){.memory = memory, .modules = modules};
}

#if defined(__x86_64__)

/* The stack used by the function at the pc of a frame. */
static int find_depth(const struct frame_pointers *pointers, const struct registers *frame,
		      int32_t frame_pointer_bytes, uint32_t *ret_depth_bytes)
{
	struct stack_depth_code code = {.frame_pointer_bytes = frame_pointer_bytes};
	cleanup_free uint8_t *bytes = NULL;
	const struct cfi_section *section;
	const struct unwind_rule *rule;
	uint64_t nr_bytes;
	remote_addr start;
	int err = unwind_modules_function(pointers->modules, registers_lookup_addr(frame), &start,
					  &nr_bytes);

	if (err)
		return err;
	/*
	 * A range that starts elsewhere, such as the cold part of a function, starts at an
	 * unknown depth.
	 */
	rule = unwind_modules_find(pointers->modules, start, &section);
	if (!rule || rule->cfa_is_expression || rule->cfa_register != REGISTER_SP ||
	    rule->cfa_offset != STACK_DEPTH_AT_ENTRY || nr_bytes > STACK_DEPTH_MAX_BYTES)
		return -ENOENT;
	bytes = malloc(nr_bytes + 1);
	if (!bytes)
		return -ENOMEM;
	err = remote_memory_read(pointers->memory, start, bytes, nr_bytes);
	if (err)
		return err;
	code.bytes = bytes;
	code.nr_bytes = nr_bytes;
	return stack_depth_find(&code, frame->values[REGISTER_PC] - start, !frame->is_interrupted,
				ret_depth_bytes);
}

int frame_pointers_find(struct frame_pointers *pointers, const struct registers *frame,
			uint64_t *ret_value)
{
	const remote_addr pc = frame->values[REGISTER_PC];
	const struct cfi_section *section;
	const struct unwind_rule *rule =
		unwind_modules_find(pointers->modules, registers_lookup_addr(frame), &section);
	const size_t i = (pc ^ pc >> 8) % FRAME_POINTERS_CACHED;
	uint32_t depth_bytes = 0;
	int32_t below_cfa;
	int err;

	if (!rule || rule->cfa_is_expression || rule->cfa_register != REGISTER_RBP)
		return -ENOENT;
	below_cfa = rule->cfa_offset;
	if (pointers->cache[i].pc != pc || !pc) {
		err = find_depth(pointers, frame, below_cfa, &depth_bytes);
		if (remote_error_is_fatal(err)) /* the next call may succeed */
			return err;
		pointers->cache[i].pc = pc;
		pointers->cache[i].err = err;
		pointers->cache[i].depth_bytes = depth_bytes;
	}
	if (!pointers->cache[i].err)
		*ret_value = frame->values[REGISTER_SP] + pointers->cache[i].depth_bytes -
			     (uint64_t)(int64_t)below_cfa;
	return pointers->cache[i].err;
}

#else

int frame_pointers_find(struct frame_pointers *pointers, const struct registers *frame,
			uint64_t *ret_value)
{
	(void)pointers, (void)frame, (void)ret_value;
	return -ENOENT;
}

#endif
