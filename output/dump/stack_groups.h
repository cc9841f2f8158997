/* SPDX-License-Identifier: MIT */
/* Where many processes died: those with equal stacks are one group, the largest first. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "output/text/string_table.h"

/* One stack, and who has it. */
struct stack_group {
	char *stack;	    /* owned; as it is to be shown, whole lines */
	const char **names; /* owned, what it points to is borrowed; in the order they came */
	uint32_t nr_names, max_names;
};

/* All zero it is empty. */
struct stack_groups {
	struct string_table stacks; /* the number of a stack is its group's */
	struct stack_group *groups; /* owned */
	uint32_t max_groups;
	uint32_t nr_names;
};

/* Free what the groups hold; they are empty then. Accepts NULL. */
void stack_groups_done(struct stack_groups *groups);

/*
 * Add one process: its stack as text, which is copied, and its name, which is borrowed as long
 * as the groups. 0 or -ENOMEM.
 */
int stack_groups_add(struct stack_groups *groups, const char *stack, const char *name);

/*
 * Write them as text, a line that sums them up first; of a group max_names names, which are
 * escaped; stacks are written as they are. Not flushed. 0, -ENOMEM, or the
 * stream's error as negative errno.
 */
int stack_groups_write(const struct stack_groups *groups, uint32_t max_names, FILE *out);
