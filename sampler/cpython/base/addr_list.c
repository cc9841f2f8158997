/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/addr_list.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"

void addr_list_done(struct addr_list *list)
{
	if (!list)
		return;
	free(list->addrs);
	*list = (struct addr_list){0};
}

int addr_list_append(struct addr_list *list, remote_addr addr)
{
	remote_addr *addrs =
		array_reserve(list->addrs, list->nr + 1, &list->max, sizeof(*list->addrs));

	if (!addrs)
		return -ENOMEM;
	list->addrs = addrs;
	addrs[list->nr++] = addr;
	return 0;
}

static int compare_addrs(const void *one, const void *other)
{
	const remote_addr *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

void addr_list_sort(struct addr_list *list)
{
	uint32_t nr = 0;

	if (list->nr)
		qsort(list->addrs, list->nr, sizeof(*list->addrs), compare_addrs);
	for (uint32_t i = 0; i < list->nr; i++)
		if (!i || list->addrs[i] != list->addrs[i - 1])
			list->addrs[nr++] = list->addrs[i];
	list->nr = nr;
}

uint32_t addr_list_find(const struct addr_list *list, remote_addr addr)
{
	const remote_addr *found = list->nr ? bsearch(&addr, list->addrs, list->nr,
						      sizeof(*list->addrs), compare_addrs)
					    : NULL;

	return found ? (uint32_t)(found - list->addrs) : ADDR_LIST_NONE;
}
