/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/clock.h"

static void seen_group_done(struct seen_group *seen)
{
	for (uint32_t i = 0; i < seen->nr_members; i++)
		thread_waiting_done(&seen->members[i].waiting);
	free(seen->members);
	free(seen->key);
	free(seen->threads);
}

void dump_changes_done(struct dump_changes *changes)
{
	if (!changes)
		return;
	for (uint32_t i = 0; i < changes->nr_groups; i++)
		seen_group_done(&changes->groups[i]);
	free(changes->groups);
	free(changes->by_key);
	*changes = (struct dump_changes){.groups = NULL};
}

static int compare_keys(const void *a, const void *b)
{
	const struct seen_group *const *one = a, *const *two = b;

	return strcmp((*one)->key, (*two)->key);
}

static int compare_threads(const void *a, const void *b)
{
	const struct seen_thread *one = a, *two = b;

	if (one->pid != two->pid)
		return one->pid < two->pid ? -1 : 1;
	return (one->tid > two->tid) - (one->tid < two->tid);
}

/* Returns the group with the key of a group of another dump; NULL if there is none. */
static const struct seen_group *find(const struct dump_changes *changes,
				     const struct seen_group *other)
{
	const struct seen_group *const *found =
		changes->nr_groups ? bsearch(&other, changes->by_key, changes->nr_groups,
					     sizeof(struct seen_group *), compare_keys)
				   : NULL;

	return found ? *found : NULL;
}

/* Returns what a group is recognised by, allocated; NULL if out of memory. */
static char *make_key(const struct thread_group *group)
{
	const struct sample_thread *first = &group->threads[0].thread->thread;
	struct text key = {0};

	text_puts(&key, group->stack);
	if (group->is_alone)
		text_printf(&key, "%d %lld", first->tid, (long long)first->interpreter_id);
	else
		text_puts(&key, "all");
	if (key.error)
		text_done(&key);
	return key.bytes;
}

/* Copy the threads of a group, sorted. Returns 0 or -ENOMEM. */
static int copy_members(struct seen_group *seen, const struct thread_group *group)
{
	seen->members = calloc((size_t)group->nr_threads + 1, sizeof(*seen->members));
	if (!seen->members)
		return -ENOMEM;
	for (uint32_t i = 0; i < group->nr_threads; i++) {
		const struct grouped_thread *thread = &group->threads[i];
		struct seen_thread *member = &seen->members[i];

		*member = (struct seen_thread){thread->pid, thread->thread->thread.tid,
					       .waiting.text = NULL};
		seen->nr_members++;
		if (thread_waiting_copy(&member->waiting, &thread->thread->waiting))
			return -ENOMEM;
	}
	qsort(seen->members, seen->nr_members, sizeof(*seen->members), compare_threads);
	return 0;
}

/* Fill *seen from a group. Returns 0 or -ENOMEM, with everything in *seen to be freed. */
static int remember(struct seen_group *seen, const struct thread_group *group)
{
	struct text threads = {0};

	thread_group_append_threads(&threads, group);
	*seen = (struct seen_group){.key = make_key(group), .threads = threads.bytes};
	if (threads.error || !seen->key || !seen->threads)
		return -ENOMEM;
	return copy_members(seen, group);
}

/* Returns how a group differs from the one before, which may be NULL. */
static enum group_change compare(const struct seen_group *seen, const struct seen_group *before)
{
	bool ran = seen->nr_members == 0;

	if (!before)
		return GROUP_NEW;
	if (before->nr_members != seen->nr_members)
		return GROUP_THREADS;
	for (uint32_t i = 0; i < seen->nr_members; i++)
		if (compare_threads(&seen->members[i], &before->members[i]) != 0)
			return GROUP_THREADS;
	for (uint32_t i = 0; i < seen->nr_members; i++) {
		const struct thread_waiting *now = &seen->members[i].waiting;
		const struct thread_waiting *then = &before->members[i].waiting;

		if (!thread_waiting_equals(now, then))
			return GROUP_WAITS;
		ran |= !now->nr_runs || now->nr_runs != then->nr_runs;
	}
	return ran ? GROUP_RAN : GROUP_SAME;
}

/* Append a group that differs from the one before, with its stack. */
static void append_change(struct text *text, const struct seen_group *seen,
			  const struct thread_group *group, const struct seen_group *before)
{
	switch (seen->change) {
	case GROUP_NEW:
		text_puts(text, "\nNew: ");
		break;
	case GROUP_THREADS:
		if (before->nr_members == seen->nr_members)
			text_puts(text, "\nOther threads: ");
		else
			text_printf(text, "\nWas %" PRIu32 " thread%s, now ", before->nr_members,
				    text_plural(before->nr_members));
		break;
	case GROUP_WAITS:
		text_puts(text, "\nOther wait: ");
		break;
	case GROUP_RAN:
	case GROUP_SAME:
		return;
	}
	thread_group_append(text, group);
}

/* Append the groups that are gone. */
static void append_gone(struct text *text, const struct dump_changes *before,
			const struct dump_changes *now)
{
	bool is_first = true;

	for (uint32_t i = 0; i < before->nr_groups; i++) {
		if (find(now, &before->groups[i]))
			continue;
		text_printf(text, "%sGone: %s\n", is_first ? "\n" : "", before->groups[i].threads);
		is_first = false;
	}
}

/* Append the groups with the same stack and threads: those that ran, or those that did not. */
static void append_rest(struct text *text, const struct dump_changes *now, enum group_change change,
			uint64_t now_ns)
{
	bool is_first = true;

	for (uint32_t i = 0; i < now->nr_groups; i++) {
		const struct seen_group *seen = &now->groups[i];

		if (seen->change != change)
			continue;
		text_puts(text, is_first ? "\n" : "");
		if (change == GROUP_RAN)
			text_puts(text, "Same stack again");
		else
			text_printf(text, "Unchanged for %.0f s",
				    (double)(now_ns - seen->since_ns) / NS_PER_S);
		text_printf(text, ": %s\n", seen->threads);
		is_first = false;
	}
}

/* Fill *seen from a paragraph about tasks. Returns 0 or -ENOMEM, as remember(). */
static int remember_tasks(struct seen_group *seen, const char *paragraph)
{
	const char *const endings[] = {" (most recent call last):", ": runs no Python code"};
	size_t length = strcspn(paragraph, "\n");

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		const size_t ending = strlen(endings[i]);

		if (length > ending &&
		    strncmp(paragraph + length - ending, endings[i], ending) == 0)
			length -= ending;
	}
	*seen = (struct seen_group){
		.key = strdup(paragraph),
		.threads = strndup(paragraph, length),
	};
	return seen->key && seen->threads ? 0 : -ENOMEM;
}

/* Fill *now, compared with the dump before. Returns 0 or -ENOMEM. */
static int remember_all(struct text *text, const struct dump_changes *before,
			struct dump_changes *now, const struct thread_groups *groups,
			const struct paragraphs *tasks, uint64_t now_ns)
{
	const size_t nr = (size_t)groups->nr_groups + tasks->nr;

	now->groups = calloc(nr + 1, sizeof(*now->groups));
	now->by_key = calloc(nr + 1, sizeof(struct seen_group *));
	if (!now->groups || !now->by_key)
		return -ENOMEM;
	for (uint32_t i = 0; i < groups->nr_groups; i++) {
		struct seen_group *seen = &now->groups[now->nr_groups];
		const struct seen_group *same;
		int err = remember(seen, &groups->groups[i]);

		now->by_key[now->nr_groups++] = seen;
		if (err)
			return err;
		same = find(before, seen);
		seen->change = compare(seen, same);
		seen->since_ns = seen->change == GROUP_SAME ? same->since_ns : now_ns;
		append_change(text, seen, &groups->groups[i], same);
	}
	for (uint32_t i = 0; i < tasks->nr; i++) {
		struct seen_group *seen = &now->groups[now->nr_groups];
		int err = remember_tasks(seen, tasks->texts[i]);

		now->by_key[now->nr_groups++] = seen;
		if (err)
			return err;
		seen->change = compare(seen, find(before, seen));
		if (seen->change == GROUP_NEW)
			text_printf(text, "\nNew: %s", tasks->texts[i]);
	}
	if (now->nr_groups)
		qsort(now->by_key, now->nr_groups, sizeof(struct seen_group *), compare_keys);
	return 0;
}

int dump_changes_append(struct text *text, struct dump_changes *changes,
			const struct thread_groups *groups, const struct paragraphs *tasks,
			uint64_t now_ns)
{
	struct dump_changes now = {.groups = NULL};
	int err = remember_all(text, changes, &now, groups, tasks, now_ns);

	if (!err) {
		append_gone(text, changes, &now);
		append_rest(text, &now, GROUP_RAN, now_ns);
		append_rest(text, &now, GROUP_SAME, now_ns);
	}
	dump_changes_done(err ? &now : changes);
	if (!err)
		*changes = now;
	return err;
}
