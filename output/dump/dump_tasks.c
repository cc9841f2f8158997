/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

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

/* FNV-1a. */
static uint64_t add_to_hash(uint64_t hash, uint64_t value)
{
	for (unsigned int i = 0; i < sizeof(value); i++)
		hash = (hash ^ (value >> 8 * i & 0xff)) * 0x100000001b3;
	return hash;
}

static uint64_t hash_of(const struct task_sample *task)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < task->nr_frames; i++) {
		hash = add_to_hash(hash, task->frames[i].function->id);
		hash = add_to_hash(hash, (uint32_t)task->frames[i].line);
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

/* The stack of a task: one that is there, or a new one. */
static int take_stack(struct dump_tasks *tasks, const struct task_sample *task, uint32_t *ret_stack)
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
	err = take_stack(tasks, task, &stack);
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

struct dump_frames dump_tasks_frames(const struct dump_tasks *tasks, uint32_t stack,
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
	const struct dump_frames frames = dump_tasks_frames(tasks, task->stack, sources);

	json_object_begin(json);
	json_key(json, "id");
	write_addr(json, task->addr);
	json_member_string(json, "name", task->name);
	json_member_bool(json, "running", task->running);
	json_key(json, "tid");
	if (task->has_thread)
		json_i64(json, task->tid);
	else
		json_null(json);
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
