/* SPDX-License-Identifier: MIT */
/* Items, by their numbers, sorted by the group that each belongs to. */
#pragma once

#include <stdint.h>

/* Empty when all zero. */
struct grouping {
	uint32_t *items; /* owned; those of group 0, then those of group 1, … */
	uint32_t *first; /* owned; by group, where its items begin; one more, where the last ends */
};

/*
 * Group the items 0 to nr_items - 1 by group_of, each below nr_groups, in linear time. The items
 * of a group ascend. Returns 0 or -ENOMEM; call grouping_done() either way.
 */
int grouping_init(struct grouping *grouping, const uint32_t *group_of, uint32_t nr_items,
		  uint32_t nr_groups);

/* Free the tables, whether grouping_init() succeeded or not. */
void grouping_done(struct grouping *grouping);
