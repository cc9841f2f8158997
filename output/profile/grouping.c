/* SPDX-License-Identifier: MIT */
#include "output/profile/grouping.h"

#include <errno.h>
#include <stdlib.h>

void grouping_done(struct grouping *grouping)
{
	free(grouping->items);
	free(grouping->first);
	*grouping = (struct grouping){.items = NULL};
}

int grouping_init(struct grouping *grouping, const uint32_t *group_of, uint32_t nr_items,
		  uint32_t nr_groups)
{
	uint32_t *first = calloc((size_t)nr_groups + 2, sizeof(*first));

	grouping->first = first;
	grouping->items = calloc((size_t)nr_items + 1, sizeof(*grouping->items));
	if (!first || !grouping->items)
		return -ENOMEM;
	/* While the items are filled in, first[group + 1] is where the next one of group goes. */
	for (uint32_t i = 0; i < nr_items; i++)
		first[group_of[i] + 2]++;
	for (uint32_t i = 2; i <= nr_groups; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < nr_items; i++)
		grouping->items[first[group_of[i] + 1]++] = i;
	return 0;
}
