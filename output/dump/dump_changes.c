/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/clock.h"

void dump_changes_done(struct dump_changes *changes)
{
	if (!changes)
		return;
	for (uint32_t i = 0; i < changes->nr_groups; i++) {
		free(changes->groups[i].stack);
		free(changes->groups[i].threads);
	}
	free(changes->groups);
	*changes = (struct dump_changes){.groups = NULL};
}

/* Returns the group of the dump before that has a stack; NULL if there is none. */
static const struct seen_group *find(const struct dump_changes *changes, const char *stack)
{
	for (uint32_t i = 0; i < changes->nr_groups; i++)
		if (strcmp(changes->groups[i].stack, stack) == 0)
			return &changes->groups[i];
	return NULL;
}

/* Fill *seen from a group. Returns 0 or -ENOMEM, with everything in *seen to be freed. */
static int remember(struct seen_group *seen, const struct thread_group *group,
		    const struct seen_group *before, uint64_t now_ns)
{
	struct text threads = {0};

	thread_group_append_threads(&threads, group);
	*seen = (struct seen_group){
		.stack = strdup(group->stack),
		.threads = threads.bytes,
		.nr_threads = group->nr_threads,
		.since_ns = now_ns,
	};
	if (threads.error || !seen->stack || !seen->threads)
		return -ENOMEM;
	if (before && before->nr_threads == seen->nr_threads &&
	    strcmp(before->threads, seen->threads) == 0)
		seen->since_ns = before->since_ns;
	return 0;
}

/* Append how a group differs from the one before with its stack, which may be NULL. */
static void append_change(struct text *text, const struct thread_group *group,
			  const struct seen_group *seen, const struct seen_group *before)
{
	if (!before) {
		text_puts(text, "\nNew: ");
		thread_group_append(text, group);
	} else if (seen->since_ns != before->since_ns) {
		text_printf(text, "\nWas %" PRIu32 " thread%s, now ", before->nr_threads,
			    text_plural(before->nr_threads));
		thread_group_append(text, group);
	}
}

/* Append the groups that are gone, and those that have not changed. */
static void append_rest(struct text *text, const struct dump_changes *before,
			const struct dump_changes *now, uint64_t now_ns)
{
	bool is_first = true;

	for (uint32_t i = 0; i < before->nr_groups; i++) {
		if (find(now, before->groups[i].stack))
			continue;
		text_printf(text, "%sGone: %s\n", is_first ? "\n" : "", before->groups[i].threads);
		is_first = false;
	}
	is_first = true;
	for (uint32_t i = 0; i < now->nr_groups; i++) {
		const struct seen_group *seen = &now->groups[i];

		if (seen->since_ns == now_ns)
			continue;
		text_printf(text, "%sUnchanged for %.0f s: %s\n", is_first ? "\n" : "",
			    (double)(now_ns - seen->since_ns) / NS_PER_S, seen->threads);
		is_first = false;
	}
}

int dump_changes_append(struct text *text, struct dump_changes *changes,
			const struct thread_groups *groups, uint64_t now_ns)
{
	struct dump_changes now = {
		.groups = calloc((size_t)groups->nr_groups + 1, sizeof(*now.groups)),
	};
	int err = now.groups ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < groups->nr_groups; i++) {
		const struct thread_group *group = &groups->groups[i];
		const struct seen_group *before = find(changes, group->stack);

		err = remember(&now.groups[now.nr_groups], group, before, now_ns);
		if (!err)
			append_change(text, group, &now.groups[now.nr_groups], before);
		now.nr_groups++;
	}
	if (!err)
		append_rest(text, changes, &now, now_ns);
	dump_changes_done(err ? &now : changes);
	if (!err)
		*changes = now;
	return err;
}
