/* SPDX-License-Identifier: MIT */
#include "sampler/python/code_ahead.h"

#include <string.h>

/* Take a range out of what was read, as far as it could be read. Whether it is there. */
static bool take(const struct code_ahead *ahead, struct remote_range *wanted)
{
	for (size_t i = 0; i < ahead->nr_ranges; i++) {
		const struct remote_range *range = &ahead->ranges[i];
		uint64_t offset = wanted->addr - range->addr;

		if (offset > range->done_bytes || wanted->size > range->size - offset)
			continue;
		wanted->done_bytes = range->done_bytes - offset;
		if (wanted->done_bytes > wanted->size)
			wanted->done_bytes = wanted->size;
		memcpy(wanted->buffer, (const uint8_t *)range->buffer + offset, wanted->done_bytes);
		return true;
	}
	return false;
}

static int ahead_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			     size_t nr_ranges)
{
	struct code_ahead *ahead = (struct code_ahead *)memory;
	size_t nr_taken = 0;

	while (nr_taken < nr_ranges && take(ahead, &ranges[nr_taken]))
		nr_taken++;
	if (nr_taken == nr_ranges)
		return 0;
	ahead->nr_ranges = 0;
	return remote_memory_read_ranges(ahead->inner, ranges, nr_ranges);
}

static int ahead_check(struct remote_memory *memory)
{
	return remote_memory_check(((struct code_ahead *)memory)->inner);
}

static const struct remote_memory_ops ahead_ops = {
	.read_ranges = ahead_read_ranges,
	.check = ahead_check,
};

static void add_range(struct code_ahead *ahead, remote_addr addr, void *buffer, size_t size)
{
	ahead->ranges[ahead->nr_ranges++] = (struct remote_range){
		.addr = addr,
		.buffer = buffer,
		.size = size,
	};
}

int code_ahead_init(struct code_ahead *ahead, struct remote_memory *inner,
		    const struct py_offsets *offsets, const struct code_named *named)
{
	ahead->memory.ops = &ahead_ops;
	ahead->inner = inner;
	ahead->nr_ranges = 0;
	add_range(ahead, named->qualname + offsets->unicode.length, ahead->name,
		  sizeof(ahead->name));
	add_range(ahead, named->filename + offsets->unicode.length, ahead->path,
		  sizeof(ahead->path));
	add_range(ahead, named->linetable + offsets->bytes.ob_size, ahead->linetable,
		  sizeof(ahead->linetable));
	add_range(ahead, named->object_addr, ahead->object, code_head_bytes(offsets));
	return remote_memory_read_ranges(inner, ahead->ranges, ahead->nr_ranges);
}
