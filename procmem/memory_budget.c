/* SPDX-License-Identifier: MIT */
#include "procmem/memory_budget.h"

#include <errno.h>

static uint64_t cost_of(const struct remote_range *ranges, size_t nr_ranges)
{
	uint64_t cost = 1 + nr_ranges / BUDGET_PIECES_PER_READ;

	for (size_t i = 0; i < nr_ranges; i++)
		cost += ranges[i].size / BUDGET_BYTES_PER_READ;
	return cost;
}

static int budget_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			      size_t nr_ranges)
{
	struct memory_budget *budget = (struct memory_budget *)memory;
	uint64_t cost = cost_of(ranges, nr_ranges);

	if (cost > budget->reads_left) {
		budget->reads_left = 0;
		return -E2BIG;
	}
	budget->reads_left -= cost;
	return remote_memory_read_ranges(budget->inner, ranges, nr_ranges);
}

static int budget_check(struct remote_memory *memory)
{
	return remote_memory_check(((struct memory_budget *)memory)->inner);
}

void memory_budget_init(struct memory_budget *budget, struct remote_memory *inner,
			uint64_t max_reads)
{
	static const struct remote_memory_ops ops = {
		.read_ranges = budget_read_ranges,
		.check = budget_check,
	};

	*budget = (struct memory_budget){
		.memory = {.ops = &ops},
		.inner = inner,
		.reads_left = max_reads,
	};
}
