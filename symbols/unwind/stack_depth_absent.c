/* SPDX-License-Identifier: MIT */
/* Replaces stack_depth.c on machines other than x86-64. */
#include <errno.h>

#include "symbols/unwind/stack_depth.h"

/* NOLINTBEGIN(misc-unused-parameters) */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int stack_depth_find(const struct stack_depth_code *code, size_t offset, bool is_call,
		     uint32_t *ret_depth_bytes)
{
	return -ENOENT;
}

/* NOLINTEND(misc-unused-parameters) */
