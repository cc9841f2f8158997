/* SPDX-License-Identifier: MIT */
/* Tasks of a dump. In the text, equal tasks share a paragraph. */
#include "output/dump/dump_tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dumped_thread.h"
#include "output/profile/label.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/hash.h"

void dump_tasks_done(struct dump_tasks *tasks)
{
	for (uint32_t i = 0; i < tasks->nr_tasks; i++) {
		free(tasks->tasks[i].name);
		free(tasks->tasks[i].awaited_by);
	}
	for (uint32_t i = 0; i < tasks->nr_stacks; i++) {
		free(tasks->stacks[i].frames);
		free(tasks->stacks[i].details);
	}
	free(tasks->tasks);
	free(tasks->stacks);
	pair_map_done(&tasks->by_addr);
	pair_map_done(&tasks->by_hash);
	*tasks = (struct dump_tasks){0};
}

static uint64_t hash_of(const struct task_sample *task)
{
	uint64_t hash = HASH_BEGIN;

	for (uint32_t i = 0; i < task->nr_frames; i++) {
		hash = hash_add_u64(hash, task->frames[i].function->id);
		hash = hash_add_u64(hash, (uint32_t)task->frames[i].line);
	}
	return hash;
}

static bool details_equal(const struct frame_detail *a, const struct frame_detail *b)
{
	return a->column == b->column && a->end_line == b->end_line &&
	       a->end_column == b->end_column;
}

static bool stack_equals(const struct dumped_stack *stack, const struct task_sample *task)
{
	if (stack->nr_frames != task->nr_frames || !stack->details != !task->details)
		return false;
	for (uint32_t i = 0; i < stack->nr_frames; i++) {
		if (stack->frames[i].function != task->frames[i].function ||
		    stack->frames[i].line != task->frames[i].line)
			return false;
		if (stack->details && !details_equal(&stack->details[i], &task->details[i]))
			return false;
	}
	return true;
}

/* Add the stack of a task. */
static int add_stack(struct dump_tasks *tasks, const struct task_sample *task, uint32_t *ret_stack)
{
	const uint32_t nr = task->nr_frames;
	struct dumped_stack *stacks = array_reserve(tasks->stacks, tasks->nr_stacks + 1,
						    &tasks->max_stacks, sizeof(*stacks));
	cleanup_free struct frame *frames = array_copy(task->frames, nr, sizeof(*frames));
	cleanup_free struct frame_detail *details = NULL;

	if (stacks)
		tasks->stacks = stacks;
	if (task->details)
		details = array_copy(task->details, nr, sizeof(*details));
	if (!stacks || !frames || (task->details && !details))
		return -ENOMEM;
	*ret_stack = tasks->nr_stacks;
	stacks[tasks->nr_stacks++] = (struct dumped_stack){
		.frames = take_ptr(frames),
		.details = take_ptr(details),
		.nr_frames = nr,
	};
	return 0;
}

/* Find the stack of a task, or add it. */
static int get_stack(struct dump_tasks *tasks, const struct task_sample *task, uint32_t *ret_stack)
{
	const uint64_t hash = hash_of(task);
	const uint32_t first = (uint32_t)(hash >> 32);
	const uint32_t second = (uint32_t)hash;
	uint32_t known = pair_map_find(&tasks->by_hash, first, second);
	int err;

	if (known != PAIR_MAP_NONE && stack_equals(&tasks->stacks[known], task)) {
		*ret_stack = known;
		return 0;
	}
	err = add_stack(tasks, task, ret_stack);
	if (err || known != PAIR_MAP_NONE)
		return err;
	return pair_map_add(&tasks->by_hash, first, second, *ret_stack);
}

uint32_t dump_tasks_find(const struct dump_tasks *tasks, uint64_t addr)
{
	return pair_map_find(&tasks->by_addr, (uint32_t)(addr >> 32), (uint32_t)addr);
}

int dump_tasks_add(struct dump_tasks *tasks, const struct task_sample *task)
{
	struct dumped_task *grown =
		array_reserve(tasks->tasks, tasks->nr_tasks + 1, &tasks->max_tasks, sizeof(*grown));
	cleanup_free char *name = strdup(task->name);
	cleanup_free uint64_t *awaited_by =
		array_copy(task->awaited_by, task->nr_awaited_by, sizeof(*awaited_by));
	uint32_t stack;
	int err;

	if (grown)
		tasks->tasks = grown;
	if (!grown || !name || !awaited_by)
		return -ENOMEM;
	err = get_stack(tasks, task, &stack);
	if (!err && dump_tasks_find(tasks, task->addr) == PAIR_MAP_NONE)
		err = pair_map_add(&tasks->by_addr, (uint32_t)(task->addr >> 32),
				   (uint32_t)task->addr, tasks->nr_tasks);
	if (err)
		return err;
	grown[tasks->nr_tasks++] = (struct dumped_task){
		.addr = task->addr,
		.name = take_ptr(name),
		.tid = task->thread ? task->thread->tid : 0,
		.has_thread = task->thread,
		.running = task->running,
		.flags = task->flags,
		.error = task->error,
		.stack = stack,
		.awaited_by = take_ptr(awaited_by),
		.nr_awaited_by = task->nr_awaited_by,
	};
	return 0;
}

/* Returns the frames of a stack, borrowed, with sources, which may be NULL. */
static struct dump_frames frames_of(const struct dump_tasks *tasks, uint32_t stack,
				    struct source_lines *sources)
{
	const struct dumped_stack *dumped = &tasks->stacks[stack];

	return (struct dump_frames){
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.sources = sources,
	};
}

static void write_addr(struct json *json, uint64_t addr)
{
	char text[sizeof("0x") + 2 * sizeof(addr)];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	json_string(json, text);
}

static void write_task(struct json *json, const struct dump_tasks *tasks,
		       const struct dumped_task *task, struct source_lines *sources)
{
	const struct dump_frames frames = frames_of(tasks, task->stack, sources);

	json_object_begin(json);
	json_key(json, "id");
	write_addr(json, task->addr);
	json_member_string(json, "name", task->name);
	json_member_bool(json, "running", task->running);
	json_member_known(json, "tid", task->has_thread ? (uint64_t)task->tid : 0);
	json_member_bool(json, "proven", !(task->flags & SAMPLE_UNPROVEN));
	json_member_string(json, "error", task->error ? dump_error_text(task->error) : NULL);
	json_key(json, "frames");
	dump_frames_write(json, &frames);
	json_key(json, "awaited_by");
	json_array_begin(json);
	for (uint32_t i = 0; i < task->nr_awaited_by; i++)
		write_addr(json, task->awaited_by[i]);
	json_array_end(json);
	json_object_end(json);
}

void dump_tasks_write(struct json *json, const struct dump_tasks *tasks,
		      struct source_lines *sources)
{
	json_array_begin(json);
	for (uint32_t i = 0; i < tasks->nr_tasks; i++)
		write_task(json, tasks, &tasks->tasks[i], sources);
	json_array_end(json);
}

/* Limit on the names listed of equal tasks, or of tasks that await one. */
enum { MAX_NAMES = 5 };

/* Tasks of one thread with the same stack. */
struct group {
	uint32_t first, last; /* task indices */
	uint32_t nr;
};

struct groups {
	struct group *groups; /* owned; ordered by their first tasks */
	uint32_t nr, max;
	uint32_t *next;		  /* owned; by task: the next task in its group */
	struct pair_map by_place; /* (stack, thread) → group */
};

static void groups_done(struct groups *groups)
{
	free(groups->groups);
	free(groups->next);
	pair_map_done(&groups->by_place);
}

/* Whether a task may be grouped: its stack is complete and of one instant. */
static bool may_group(const struct dumped_task *task)
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

static int group_task(struct groups *groups, const struct dump_tasks *tasks, uint32_t index)
{
	const struct dumped_task *task = &tasks->tasks[index];
	const uint32_t thread = task->has_thread ? (uint32_t)task->tid : UINT32_MAX;
	struct group *group;
	uint32_t known;
	int err;

	groups->next[index] = DUMP_TASKS_NONE;
	if (!may_group(task))
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
		err = group_task(groups, tasks, i);
	return err;
}

/* Append a task's name, or its address if the name is empty or unknown. */
static void append_task(struct text *text, const struct dump_tasks *tasks, uint64_t addr)
{
	const uint32_t index = dump_tasks_find(tasks, addr);
	const char *name = index == DUMP_TASKS_NONE ? "" : tasks->tasks[index].name;

	if (!name[0]) {
		text_printf(text, "0x%" PRIx64, addr);
		return;
	}
	text_puts(text, "\"");
	label_append_string(text, name);
	text_puts(text, "\"");
}

/* Append the first names of nr tasks, and how many more there are. */
static void append_tasks(struct text *text, const struct dump_tasks *tasks, const uint64_t *addrs,
			 size_t nr)
{
	for (size_t i = 0; i < nr && i < MAX_NAMES; i++) {
		text_puts(text, i ? ", " : "");
		append_task(text, tasks, addrs[i]);
	}
	if (nr > MAX_NAMES)
		text_printf(text, " and %zu others", nr - MAX_NAMES);
}

static int compare_addrs(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sort and remove duplicates. Returns how many remain at the front. */
static size_t remove_duplicates(uint64_t *addrs, size_t nr)
{
	size_t nr_kept = 0;

	qsort(addrs, nr, sizeof(*addrs), compare_addrs);
	for (size_t i = 0; i < nr; i++)
		if (!nr_kept || addrs[nr_kept - 1] != addrs[i])
			addrs[nr_kept++] = addrs[i];
	return nr_kept;
}

/* Whether the nr tasks that await some task of a group await all of them. */
static bool await_all(const struct dump_tasks *tasks, const struct groups *groups,
		      const struct group *group, size_t nr)
{
	for (uint32_t i = group->first; i != DUMP_TASKS_NONE; i = groups->next[i])
		if (tasks->tasks[i].nr_awaited_by != nr)
			return false;
	return true;
}

/* Returns all tasks that await some task of a group, allocated; NULL if out of memory. */
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
	*ret_nr = group->nr == 1 ? nr : remove_duplicates(addrs, nr);
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
	uint64_t addrs[MAX_NAMES];
	size_t nr = 0;

	for (uint32_t i = group->first; i != DUMP_TASKS_NONE && nr < MAX_NAMES; i = groups->next[i])
		addrs[nr++] = tasks->tasks[i].addr;
	append_tasks(text, tasks, addrs, nr);
	if (group->nr > nr)
		text_puts(text, ", …");
}

/* Where tasks are described, and how. */
struct description {
	struct source_lines *sources; /* borrowed; NULL: no source */
	pid_t pid;
	const char *name; /* of the process; NULL: not shown */
};

static int append_group(struct text *text, const struct dump_tasks *tasks,
			const struct groups *groups, const struct group *group,
			const struct description *how)
{
	const struct dumped_task *task = &tasks->tasks[group->first];
	const struct dump_frames frames = frames_of(tasks, task->stack, how->sources);
	int err;

	if (group->nr == 1)
		text_puts(text, "Task ");
	else
		text_printf(text, "%" PRIu32 " equal tasks: ", group->nr);
	append_members(text, tasks, groups, group);
	if (task->has_thread)
		text_printf(text, " of thread %d", task->tid);
	else
		text_puts(text, " of a loop that does not run");
	dumped_process_append(text, how->pid, how->name);
	if (task->running)
		text_puts(text, ", running");
	err = append_awaiters(text, tasks, groups, group);
	text_puts(text, frames.nr || task->error ? " (most recent call last):\n"
						 : ": runs no Python code\n");
	if (task->error)
		text_printf(text, "  (the chain of awaits is incomplete: %s)\n",
			    dump_error_text(task->error));
	else if (task->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (read while it ran: these frames may not belong "
				"together)\n");
	dump_frames_append(text, &frames);
	return err;
}

int dump_tasks_describe(const struct dump_tasks *tasks, struct source_lines *sources, pid_t pid,
			const char *name, struct paragraphs *paragraphs)
{
	const struct description how = {sources, pid, name};
	struct groups groups = {0};
	int err = groups_fill(&groups, tasks);

	for (uint32_t i = 0; !err && i < groups.nr; i++) {
		struct text text = {0};

		err = append_group(&text, tasks, &groups, &groups.groups[i], &how);
		if (!err)
			err = paragraphs_add(paragraphs, &text);
		text_done(&text);
	}
	groups_done(&groups);
	return err;
}
