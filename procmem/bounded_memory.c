/* SPDX-License-Identifier: MIT */
#include "procmem/bounded_memory.h"

#include <errno.h>

#include "procmem/clock.h"

static int bounded_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			       size_t nr_ranges)
{
	struct bounded_memory *bounded = (struct bounded_memory *)memory;
	size_t cost = nr_ranges;

	for (size_t i = 0; i < nr_ranges; i++)
		cost += ranges[i].size / BOUNDED_BYTES_PER_PIECE;
	if (!bounded->nr_left || cost > bounded->nr_left || (bounded->stop && *bounded->stop) ||
	    (bounded->deadline_ns != UINT64_MAX && clock_now_ns() >= bounded->deadline_ns)) {
		bounded->nr_left = 0;
		return -E2BIG;
	}
	bounded->nr_left -= cost;
	return remote_memory_read_ranges(bounded->inner, ranges, nr_ranges);
}

static int bounded_check(struct remote_memory *memory)
{
	return remote_memory_check(((struct bounded_memory *)memory)->inner);
}

static const struct remote_memory_ops bounded_ops = {
	.read_ranges = bounded_read_ranges,
	.check = bounded_check,
};

void bounded_memory_init(struct bounded_memory *bounded, struct remote_memory *inner,
			 size_t max_ranges, const volatile sig_atomic_t *stop, uint64_t deadline_ns)
{
	*bounded = (struct bounded_memory){
		.memory.ops = &bounded_ops,
		.inner = inner,
		.nr_left = max_ranges,
		.stop = stop,
		.deadline_ns = deadline_ns,
	};
}
