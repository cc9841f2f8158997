/* SPDX-License-Identifier: MIT */
#include "symbols/jit/remote_list.h"

#include <errno.h>

static int walk_once(struct remote_list *list)
{
	remote_addr addr, prev_addr = 0;
	int err = list->ops->read_head(list, &addr);

	for (uint32_t i = 0; !err && addr && i < REMOTE_LIST_MAX_ENTRIES; i++) {
		remote_addr next_addr;

		err = list->ops->read_entry(list, addr, prev_addr, &next_addr);
		if (err)
			return err;
		prev_addr = addr;
		addr = next_addr;
	}
	if (err)
		return err;
	/* A list with more entries is too long, or circular. */
	return addr ? -EAGAIN : 0;
}

int remote_list_walk(struct remote_list *list)
{
	int err = -EAGAIN;

	for (uint32_t i = 0; err == -EAGAIN && i < REMOTE_LIST_MAX_TRIES; i++)
		err = walk_once(list);
	return err;
}
