/* SPDX-License-Identifier: MIT */
#include "sampler/python/c_string.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size)
{
	const size_t max_bytes = size - 1;
	const size_t page_left = PAGE_BYTES - addr % PAGE_BYTES;
	const size_t here = page_left < max_bytes ? page_left : max_bytes;
	struct remote_range ranges[] = {
		{.addr = addr, .buffer = ret_text, .size = here},
		{.addr = addr + here, .buffer = ret_text + here, .size = max_bytes - here},
	};
	size_t nr_bytes;
	int err;

	assert(size >= 2 && size <= C_STRING_MAX_BYTES);
	err = remote_memory_read_ranges(memory, ranges, here < max_bytes ? 2 : 1);
	if (err)
		return err;
	nr_bytes = ranges[0].done_bytes;
	if (nr_bytes == here)
		nr_bytes += ranges[1].done_bytes;
	if (nr_bytes < max_bytes && !memchr(ret_text, '\0', nr_bytes))
		return -EFAULT;
	ret_text[max_bytes] = '\0';
	return 0;
}
