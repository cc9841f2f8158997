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
