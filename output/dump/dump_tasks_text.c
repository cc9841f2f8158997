/* SPDX-License-Identifier: MIT */
/* Tasks for people: those that are alike are told together. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump.h"
#include "output/dump/dump_tasks.h"
#include "output/profile/label.h"
#include "procmem/array.h"

/* So many names are told of tasks that are alike, or that await one. */
enum { NAMES_TOLD = 5 };

/* Tasks of one thread with one stack. */
struct group {
	uint32_t first, last; /* indices of tasks */
	uint32_t nr;
};

struct groups {
	struct group *groups; /* in the order of their first tasks; owned */
	uint32_t nr, max;
	uint32_t *next;		  /* of each task the next one in its group; owned */
	struct pair_map by_place; /* the index of a group by stack and thread */
};

static void groups_done(struct groups *groups)
{
	free(groups->groups);
	free(groups->next);
	pair_map_done(&groups->by_place);
}

/* Whether a task may be told together with others: what they do at one moment is known. */
static bool may_join(const struct dumped_task *task)
{
	return !task->running && !task->error && !(task->flags & SAMPLE_UNPROVEN);
}

static int add_group(struct groups *groups, uint32_t task)
{
	struct group *grown =
		array_reserve(groups->groups, groups->nr + 1, &groups->max, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	groups->groups = grown;
	grown[groups->nr++] = (struct group){.first = task, .last = task, .nr = 1};
	return 0;
}

static int join(struct groups *groups, const struct dump_tasks *tasks, uint32_t index)
{
	const struct dumped_task *task = &tasks->tasks[index];
	const uint32_t thread = task->has_thread ? (uint32_t)task->tid : UINT32_MAX;
	struct group *group;
	uint32_t known;
	int err;

	groups->next[index] = DUMP_TASKS_NONE;
	if (!may_join(task))
		return add_group(groups, index);
	known = pair_map_find(&groups->by_place, task->stack, thread);
	if (known >= groups->nr) { /* none yet */
		err = add_group(groups, index);
		return err ? err
			   : pair_map_add(&groups->by_place, task->stack, thread, groups->nr - 1);
	}
	group = &groups->groups[known];
	groups->next[group->last] = index;
	group->last = index;
	group->nr++;
	return 0;
}

static int groups_fill(struct groups *groups, const struct dump_tasks *tasks)
{
	int err = 0;

	groups->next = calloc(tasks->nr_tasks + 1ull, sizeof(*groups->next));
	if (!groups->next)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < tasks->nr_tasks; i++)
		err = join(groups, tasks, i);
	return err;
}

/* A task by its name, or its address if it has none that is known. */
static void append_task(struct text *text, const struct dump_tasks *tasks, uint64_t addr)
{
	const uint32_t index = dump_tasks_find(tasks, addr);
	const char *name = index == DUMP_TASKS_NONE ? "" : tasks->tasks[index].name;

	if (!name[0]) {
		text_printf(text, "0x%" PRIx64, addr);
		return;
	}
	text_puts(text, "\"");
	label_append_escaped(text, name, strlen(name), LABEL_DISPLAY);
	text_puts(text, "\"");
}

/* The first names of nr tasks, and that there are more. */
static void append_tasks(struct text *text, const struct dump_tasks *tasks, const uint64_t *addrs,
			 size_t nr)
{
	for (size_t i = 0; i < nr && i < NAMES_TOLD; i++) {
		text_puts(text, i ? ", " : "");
		append_task(text, tasks, addrs[i]);
	}
	if (nr > NAMES_TOLD)
		text_printf(text, " and %zu others", nr - NAMES_TOLD);
}

static int compare_addrs(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How many of so many are different; those are in front then, by rising value. */
static size_t keep_different(uint64_t *addrs, size_t nr)
{
	size_t nr_kept = 0;

	qsort(addrs, nr, sizeof(*addrs), compare_addrs);
	for (size_t i = 0; i < nr; i++)
		if (!nr_kept || addrs[nr_kept - 1] != addrs[i])
			addrs[nr_kept++] = addrs[i];
	return nr_kept;
}

/* Whether nr tasks, which are all that await some task of a group, await each of its tasks. */
static bool await_all(const struct dump_tasks *tasks, const struct groups *groups,
		      const struct group *group, size_t nr)
{
	for (uint32_t i = group->first; i != DUMP_TASKS_NONE; i = groups->next[i])
		if (tasks->tasks[i].nr_awaited_by != nr)
			return false;
	return true;
}

/* All that await some task of a group, allocated. NULL: out of memory. */
static uint64_t *collect_awaiters(const struct dump_tasks *tasks, const struct groups *groups,
				  const struct group *group, size_t *ret_nr)
{
	uint64_t *addrs;
	size_t nr = 0;

	for (uint32_t i = group->first; i != DUMP_TASKS_NONE; i = groups->next[i])
		nr += tasks->tasks[i].nr_awaited_by;
	addrs = reallocarray(NULL, nr + 1, sizeof(*addrs));
	if (!addrs)
		return NULL;
	nr = 0;
	for (uint32_t i = group->first; i != DUMP_TASKS_NONE; i = groups->next[i])
		for (uint32_t n = 0; n < tasks->tasks[i].nr_awaited_by; n++)
			addrs[nr++] = tasks->tasks[i].awaited_by[n];
	*ret_nr = group->nr == 1 ? nr : keep_different(addrs, nr);
	return addrs;
}

static int append_awaiters(struct text *text, const struct dump_tasks *tasks,
			   const struct groups *groups, const struct group *group)
{
	size_t nr;
	uint64_t *addrs = collect_awaiters(tasks, groups, group, &nr);

	if (!addrs)
		return -ENOMEM;
	if (nr)
		text_puts(text, await_all(tasks, groups, group, nr) ? ", awaited by "
								    : ", some awaited by ");
	append_tasks(text, tasks, addrs, nr);
	free(addrs);
	return 0;
}

static void append_members(struct text *text, const struct dump_tasks *tasks,
			   const struct groups *groups, const struct group *group)
{
	uint64_t addrs[NAMES_TOLD];
	size_t nr = 0;

	for (uint32_t i = group->first; i != DUMP_TASKS_NONE && nr < NAMES_TOLD;
	     i = groups->next[i])
		addrs[nr++] = tasks->tasks[i].addr;
	append_tasks(text, tasks, addrs, nr);
	if (group->nr > nr)
		text_puts(text, ", …");
}

static int append_group(struct text *text, const struct dump_tasks *tasks,
			const struct groups *groups, const struct group *group,
			struct source_lines *sources)
{
	const struct dumped_task *task = &tasks->tasks[group->first];
	const struct dump_frames frames = dump_tasks_frames(tasks, task->stack, sources);
	int err;

	if (group->nr == 1)
		text_puts(text, "\nTask ");
	else
		text_printf(text, "\n%" PRIu32 " tasks like this: ", group->nr);
	append_members(text, tasks, groups, group);
	if (task->has_thread)
		text_printf(text, " of thread %d", task->tid);
	else
		text_puts(text, " of a thread that has ended");
	if (task->running)
		text_puts(text, ", running");
	err = append_awaiters(text, tasks, groups, group);
	text_puts(text, frames.nr || task->error ? " (most recent call last):\n"
						 : ": runs no Python code\n");
	if (task->error)
		text_printf(text, "  (what it awaits could not be followed to the end: %s)\n",
			    dump_error_text(task->error));
	else if (task->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (it went on while it was read: these frames may not belong "
				"together)\n");
	dump_frames_append(text, &frames);
	return err;
}

int dump_tasks_append(struct text *text, const struct dump_tasks *tasks,
		      struct source_lines *sources)
{
	struct groups groups = {0};
	int err = groups_fill(&groups, tasks);

	for (uint32_t i = 0; !err && i < groups.nr; i++)
		err = append_group(text, tasks, &groups, &groups.groups[i], sources);
	groups_done(&groups);
	return err;
}
