/* SPDX-License-Identifier: MIT */
#include "sampler/entry_frame.h"

#include "sampler/python/executable.h"
#include "sampler/python/frame_walk.h"

/* So much is looked through: more than C functions take between two loops. */
enum { MAX_BYTES = 32768, WORD_BYTES = 8 };

bool entry_frame_read(const struct code_cache *codes, struct stack_window *window, remote_addr addr,
		      remote_addr *ret_previous)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	uint64_t executable, owner;

	if (stack_window_u64(window, addr + offsets->frame.executable, &executable))
		return false;
	executable &= ~(uint64_t)OBJECT_TAG_MASK;
	return executable && executable_is_nothing(codes, executable) &&
	       !stack_window_u64(window, addr + offsets->frame.owner, &owner) &&
	       (owner & UINT8_MAX) >= codes->build->traits.shim_owner &&
	       !stack_window_u64(window, addr + offsets->frame.previous, ret_previous);
}

bool entry_frame_find(const struct code_cache *codes, struct stack_window *window, remote_addr addr,
		      remote_addr *ret_entry_addr)
{
	addr = (addr + WORD_BYTES - 1) & ~(remote_addr)(WORD_BYTES - 1);
	for (uint32_t i = 0; i < MAX_BYTES; i += WORD_BYTES) {
		remote_addr previous;

		if (entry_frame_read(codes, window, addr + i, &previous)) {
			*ret_entry_addr = addr + i;
			return true;
		}
	}
	return false;
}
