/* SPDX-License-Identifier: MIT */
#include "output/dump/stack_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/text.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

void stack_groups_done(struct stack_groups *groups)
{
	if (!groups)
		return;
	for (uint32_t i = 0; i < groups->stacks.nr; i++) {
		free(groups->groups[i].stack);
		free(groups->groups[i].names);
	}
	free(groups->groups);
	string_table_done(&groups->stacks);
	*groups = (struct stack_groups){.groups = NULL};
}

/* Find the group of a stack, or add it. Returns NULL if out of memory. */
static struct stack_group *group_get(struct stack_groups *groups, const char *stack)
{
	uint32_t nr = groups->stacks.nr;
	struct stack_group *rows =
		array_reserve(groups->groups, nr + 1, &groups->max_groups, sizeof(*rows));
	cleanup_free char *copy = strdup(stack);
	uint32_t index;

	if (!rows || !copy)
		return NULL;
	groups->groups = rows;
	if (string_table_get(&groups->stacks, copy, &index))
		return NULL;
	if (index == nr) {
		rows[index] = (struct stack_group){.stack = copy};
		copy = NULL;
	}
	return &rows[index];
}

int stack_groups_add(struct stack_groups *groups, const char *stack, const char *name)
{
	struct stack_group *group = group_get(groups, stack);
	const char **names;

	if (!group)
		return -ENOMEM;
	names = array_reserve(group->names, group->nr_names + 1, &group->max_names, sizeof(*names));
	if (!names)
		return -ENOMEM;
	group->names = names;
	names[group->nr_names++] = name;
	groups->nr_names++;
	return 0;
}

/* Larger first, then in order of arrival. */
static int group_compare(const void *left, const void *right, void *context)
{
	const struct stack_group *groups = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;

	if (groups[a].nr_names != groups[b].nr_names)
		return groups[a].nr_names < groups[b].nr_names ? 1 : -1;
	return (a > b) - (a < b);
}

static void append_group(struct text *text, const struct stack_group *group, uint32_t max_names)
{
	const uint32_t nr_listed = group->nr_names < max_names ? group->nr_names : max_names;

	text_printf(text, "\n%" PRIu32 " core%s:", group->nr_names, text_plural(group->nr_names));
	for (uint32_t i = 0; i < nr_listed; i++) {
		text_puts(text, i ? ", " : " ");
		label_append_string(text, group->names[i]);
	}
	if (nr_listed < group->nr_names)
		text_printf(text, " and %" PRIu32 " more", group->nr_names - nr_listed);
	text_puts(text, "\n");
	text_puts(text, group->stack);
}

int stack_groups_write(const struct stack_groups *groups, uint32_t max_names, FILE *out)
{
	const uint32_t nr = groups->stacks.nr;
	cleanup_free uint32_t *order = calloc((size_t)nr + 1, sizeof(*order));
	struct text text = {0};
	int err;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), group_compare, groups->groups);
	text_printf(&text, "%" PRIu32 " core%s, %" PRIu32 " distinct stack%s\n", groups->nr_names,
		    text_plural(groups->nr_names), nr, text_plural(nr));
	for (uint32_t i = 0; i < nr; i++)
		append_group(&text, &groups->groups[order[i]], max_names);
	err = text_write(&text, out);
	text_done(&text);
	return err;
}
