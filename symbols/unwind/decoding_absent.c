/* SPDX-License-Identifier: MIT */
/* Replaces call_site.c and stack_depth.c on machines other than x86-64, whose code is not decoded. */
#include <errno.h>

#include "symbols/unwind/call_site.h"
#include "symbols/unwind/stack_depth.h"

/* NOLINTBEGIN(misc-unused-parameters) */
#pragma GCC diagnostic ignored "-Wunused-parameter"

void call_sites_init(struct call_sites *sites, struct remote_memory *memory, struct module_map *map)
{
}

int call_sites_find(struct call_sites *sites, struct stack_window *window,
		    const struct registers *frame, enum call_site_kind *ret_kind,
		    remote_addr *ret_cfa)
{
	return -ENOENT;
}

int stack_depth_find(const struct stack_depth_code *code, size_t offset, bool is_call,
		     uint32_t *ret_depth_bytes)
{
	return -ENOENT;
}

/* NOLINTEND(misc-unused-parameters) */
