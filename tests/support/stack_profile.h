/* SPDX-License-Identifier: MIT */
/* Profiles built from stacks written as text, for tests of profile readers. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/profile.h"

/* First line of a function by the first letter of its name: 10 for 'a', 20 for 'b', … */
static inline int32_t stack_first_line(const char *name)
{
	return 10 * (name[0] - 'a' + 1);
}

/*
 * The node of a stack "a@11;b@22;c": functions of app.py, outermost first. "@" gives the
 * executing line where it is not the function's first line. Overwrites the part of stack that it
 * parses.
 */
static inline uint32_t stack_node(struct profile *profile, char *stack)
{
	uint32_t node = PROFILE_NONE;
	char *rest;

	for (char *name = strtok_r(stack, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
		char *at = strchr(name, '@');
		int32_t line = at ? (int32_t)strtol(at + 1, NULL, 10) : stack_first_line(name);
		struct function function = {.qualname = name, .path = "app.py"};
		uint32_t index;

		if (at)
			*at = '\0';
		function.first_line = stack_first_line(name);
		cr_assert(eq(int, profile_get_function(profile, &function, &index), 0));
		cr_assert(eq(int, profile_get_node(profile, node, index, line, &node), 0));
	}
	return node;
}

/* Add a sample of the given time, all of it on the CPU. The stack "" has no Python frames. */
static inline void add_stack(struct profile *profile, enum profile_side side, const char *stack,
			     uint64_t ns)
{
	char *copy = strdup(stack);
	struct profile_sample sample = {
		.wall_ns = ns,
		.cpu_ns = ns,
		.thread = PROFILE_NONE,
		.flags = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU,
	};

	cr_assert(copy != NULL);
	sample.node = stack_node(profile, copy);
	cr_assert(eq(int, profile_add(profile, side, &sample), 0));
	free(copy);
}
