/* SPDX-License-Identifier: MIT */
#include "procmem/memory.h"

int remote_memory_read_all(struct remote_memory *memory, struct remote_range *ranges,
			   size_t nr_ranges)
{
	int err = remote_memory_read_ranges(memory, ranges, nr_ranges);

	for (size_t i = 0; !err && i < nr_ranges; i++)
		if (ranges[i].done_bytes != ranges[i].size)
			err = -EFAULT;
	return err;
}

int remote_memory_read(struct remote_memory *memory, remote_addr addr, void *buffer, size_t size)
{
	struct remote_range range = {.addr = addr, .buffer = buffer, .size = size};

	return remote_memory_read_all(memory, &range, 1);
}

bool remote_memory_fault_in(struct remote_memory *memory, remote_addr addr)
{
	uint8_t bytes[REMOTE_FAULT_IN_BYTES];
	struct remote_range range = {.addr = addr, .buffer = bytes, .size = sizeof(bytes)};

	(void)remote_memory_read_ranges(memory, &range, 1);
	return range.done_bytes != 0;
}

int remote_memory_read_u64(struct remote_memory *memory, remote_addr addr, uint64_t *ret_value)
{
	uint64_t value;
	int err;

	err = remote_memory_read(memory, addr, &value, sizeof(value));
	if (err)
		return err;
	*ret_value = value;
	return 0;
}
