/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/dump/stack_groups.h"
#include "procmem/cleanup.h"

static char *write_text(const struct stack_groups *groups, uint32_t max_names)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(out != NULL);
	cr_assert(zero(int, stack_groups_write(groups, max_names, out)));
	(void)fclose(out);
	return text;
}

Test(stack_groups, largest_group_comes_first_with_limited_names)
{
	static const char *const cores[][2] = {
		{"  f\n", "core.1"},	    {"  g\n", "core.2"}, {"  g\n", "core.3"},
		{"  h\n", "core.\033[31m"}, {"  g\n", "core.5"},
	};
	struct stack_groups groups = {0};
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < sizeof(cores) / sizeof(*cores); i++) {
		char stack[8]; /* reused, so it must be copied */

		(void)snprintf(stack, sizeof(stack), "%s", cores[i][0]);
		cr_assert(zero(int, stack_groups_add(&groups, stack, cores[i][1])));
	}
	text = write_text(&groups, 2);
	cr_expect(eq(str, text,
		     (char *)"5 cores, 3 distinct stacks\n"
			     "\n3 cores: core.2, core.3 and 1 more\n  g\n"
			     "\n1 core: core.1\n  f\n"
			     "\n1 core: core.\\x1b[31m\n  h\n"));
	stack_groups_done(&groups);
	stack_groups_done(NULL);
}

Test(stack_groups, empty_groups_are_written)
{
	struct stack_groups groups = {0};
	cleanup_free char *text = write_text(&groups, 2);

	cr_expect(eq(str, text, (char *)"0 cores, 0 distinct stacks\n"));
}

Test(stack_groups, groups_thousands_of_stacks)
{
	struct stack_groups groups = {0};
	char stack[16];

	for (unsigned i = 0; i < 10000; i++) {
		(void)snprintf(stack, sizeof(stack), "%u\n", i % 1000);
		cr_assert(zero(int, stack_groups_add(&groups, stack, "core")));
	}
	cr_expect(eq(u32, groups.stacks.nr, 1000));
	cr_expect(eq(u32, groups.nr_names, 10000));
	for (uint32_t i = 0; i < groups.stacks.nr; i++)
		cr_expect(eq(u32, groups.groups[i].nr_names, 10));
	stack_groups_done(&groups);
}
