/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the code of a function. The first byte chooses the place in it whose stack depth
 * is computed.
 */
#include "symbols/unwind/stack_depth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack_depth_code code = {.bytes = data, .nr_bytes = size};
	uint32_t depth_bytes;

	if (!size)
		return 0;
	code.bytes++;
	code.nr_bytes--;
	code.frame_pointer_bytes = data[0] & 16;
	code.entry_offset = data[0] & 32;
	(void)stack_depth_find(&code, data[0], data[0] & 1, &depth_bytes);
	return 0;
}
