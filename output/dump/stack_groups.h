/* SPDX-License-Identifier: MIT */
/* Groups processes that died with equal stacks, the largest group first. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "output/tables/string_table.h"

/* A stack and the processes that have it. */
struct stack_group {
	char *stack;	    /* owned; whole lines, as printed */
	const char **names; /* owned; the names are borrowed; in order of arrival */
	uint32_t nr_names, max_names;
};

/* Empty when all zero. */
struct stack_groups {
	struct string_table stacks; /* a stack's number is its group's index */
	struct stack_group *groups; /* owned */
	uint32_t max_groups;
	uint32_t nr_names;
};

/* Free and empty the groups. Accepts NULL. */
void stack_groups_done(struct stack_groups *groups);

/*
 * Add a process. Its stack, as text, is copied; its name is borrowed as long as the groups.
 * Returns 0 or -ENOMEM.
 */
int stack_groups_add(struct stack_groups *groups, const char *stack, const char *name);

/*
 * Write the groups as text, after a line with their totals. Each lists at most max_names names,
 * which are escaped; stacks are written as they are. Not flushed. Returns 0, -ENOMEM, or the
 * stream's error as negative errno.
 */
int stack_groups_write(const struct stack_groups *groups, uint32_t max_names, FILE *out);
