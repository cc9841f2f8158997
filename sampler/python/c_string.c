/* SPDX-License-Identifier: MIT */
#include "sampler/python/c_string.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size)
{
	const size_t max_bytes = size - 1;
	size_t nr_bytes = 0, end = PAGE_BYTES - addr % PAGE_BYTES;

	assert(size >= 2 && size <= C_STRING_MAX_BYTES);
	/* One page after the other, so that a look keeps both (sampler/look_memory.h). */
	for (; nr_bytes < max_bytes; end = max_bytes) {
		struct remote_range range = {.addr = addr + nr_bytes,
					     .buffer = ret_text + nr_bytes};
		int err;

		range.size = (end < max_bytes ? end : max_bytes) - nr_bytes;
		err = remote_memory_read_ranges(memory, &range, 1);
		if (err)
			return err;
		if (memchr(range.buffer, '\0', range.done_bytes))
			return 0;
		if (range.done_bytes < range.size)
			return -EFAULT;
		nr_bytes += range.size;
	}
	ret_text[max_bytes] = '\0';
	return 0;
}

int type_name_read(struct remote_memory *memory, const struct py_offsets *offsets,
		   remote_addr type_addr, char *ret_text, size_t size)
{
	remote_addr name_addr;
	int err = remote_memory_read_u64(memory, type_addr + offsets->object.tp_name, &name_addr);

	return err ? err : c_string_read(memory, name_addr, ret_text, size);
}
