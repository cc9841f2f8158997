/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_entry.h"

#include "sampler/python/executable.h"
#include "sampler/python/frame_walk.h"

/* So much is looked through: more than C functions take between two loops. */
enum { MAX_BYTES = 32768, WORD_BYTES = 8 };

static const struct py_offsets *offsets_of(const struct dumped_stack *stack)
{
	return &stack->codes->build->offsets;
}

/* Frames that say themselves that the loop was called for them are 3.11's, as its cframes are. */
static bool has_cframes(const struct py_build *build)
{
	return build->offsets.frame.is_entry != OFFSET_ABSENT &&
	       build->offsets.cframe.current_frame != OFFSET_ABSENT;
}

bool dumped_entry_is_told(const struct py_build *build)
{
	return !build->traits.frames_on_heap &&
	       (build->offsets.frame.is_entry == OFFSET_ABSENT || has_cframes(build));
}

static bool read_frame(const struct dumped_stack *stack, remote_addr addr,
		       struct dumped_entry *ret_entry)
{
	const struct py_offsets *offsets = offsets_of(stack);
	const remote_addr link_addr = addr + offsets->frame.previous;
	uint64_t executable, owner, previous;

	if (stack_window_u64(stack->window, addr + offsets->frame.executable, &executable))
		return false;
	executable &= ~(uint64_t)OBJECT_TAG_MASK;
	if (!executable || !executable_is_nothing(stack->codes, executable) ||
	    stack_window_u64(stack->window, addr + offsets->frame.owner, &owner) ||
	    (owner & UINT8_MAX) < stack->codes->build->traits.shim_owner ||
	    stack_window_u64(stack->window, link_addr, &previous))
		return false;
	*ret_entry = (struct dumped_entry){
		.previous = previous,
		.caller_addr = addr,
		.link_addr = link_addr,
	};
	return true;
}

/* The thread's own cframe is no loop's. */
static bool is_root(const struct dumped_stack *stack, remote_addr addr)
{
	return addr - stack->thread_addr < offsets_of(stack)->thread.size;
}

/* Whether the cframe at addr may name that one: of a loop further out, or of none. */
static bool may_name(const struct dumped_stack *stack, remote_addr addr, remote_addr outer_addr)
{
	return is_root(stack, outer_addr) ||
	       (outer_addr > addr && outer_addr - addr < MAX_BYTES && outer_addr % WORD_BYTES == 0);
}

struct cframe {
	remote_addr current_frame;
	remote_addr previous;
};

/*
 * Two words: nothing but where they lead tells what they are. 0; -ENOENT: it is no cframe;
 * -EFAULT: it is not in the copy, or what ends the sampling.
 */
static int read_cframe(const struct dumped_stack *stack, remote_addr addr,
		       struct cframe *ret_cframe)
{
	const struct py_offsets *offsets = offsets_of(stack);
	struct cframe cframe;
	int err = stack_window_u64(stack->window, addr + offsets->cframe.current_frame,
				   &cframe.current_frame);

	if (!err)
		err = stack_window_u64(stack->window, addr + offsets->cframe.previous,
				       &cframe.previous);
	if (err)
		return err;
	if (!cframe.current_frame || cframe.current_frame % WORD_BYTES != 0 ||
	    !may_name(stack, addr, cframe.previous))
		return -ENOENT;
	*ret_cframe = cframe;
	return 0;
}

static bool read_with_cframe(const struct dumped_stack *stack, remote_addr addr,
			     struct dumped_entry *ret_entry)
{
	struct cframe cframe, outer = {.current_frame = 0};
	int err;

	if (read_cframe(stack, addr, &cframe))
		return false;
	err = is_root(stack, cframe.previous) ? 0 : read_cframe(stack, cframe.previous, &outer);
	if (err == -ENOENT)
		return false;
	*ret_entry = (struct dumped_entry){
		.previous = outer.current_frame,
		.caller_addr = err ? addr : outer.current_frame,
		.leaf_addr = cframe.current_frame,
		.outer_addr = cframe.previous,
		.link_addr = addr + offsets_of(stack)->cframe.previous,
	};
	return true;
}

bool dumped_entry_read(const struct dumped_stack *stack, remote_addr addr,
		       struct dumped_entry *ret_entry)
{
	return has_cframes(stack->codes->build) ? read_with_cframe(stack, addr, ret_entry)
						: read_frame(stack, addr, ret_entry);
}

bool dumped_entry_find(const struct dumped_stack *stack, remote_addr addr,
		       remote_addr *ret_entry_addr)
{
	addr = (addr + WORD_BYTES - 1) & ~(remote_addr)(WORD_BYTES - 1);
	for (uint32_t i = 0; i < MAX_BYTES; i += WORD_BYTES) {
		struct dumped_entry entry;

		if (dumped_entry_read(stack, addr + i, &entry)) {
			*ret_entry_addr = addr + i;
			return true;
		}
	}
	return false;
}
