/* SPDX-License-Identifier: MIT */
/*
 * The tasks of asyncio in a dump. Of thousands most have the same stack as many others: each
 * stack is kept once, and those who read the text see it once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/dump/dump_frames.h"
#include "output/text/pair_map.h"

#define DUMP_TASKS_NONE UINT32_MAX /* the index of none */

struct dumped_stack {
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned; NULL: none came */
	uint32_t nr_frames;
};

/* A task that is kept. */
struct dumped_task {
	uint64_t addr;
	char *name; /* owned */
	pid_t tid;
	bool has_thread; /* tid is that of its event loop's thread, which has not ended */
	bool running;
	uint32_t flags;
	int error;
	uint32_t stack;	      /* index of it */
	uint64_t *awaited_by; /* owned; addr of each */
	uint32_t nr_awaited_by;
};

/* All zero there are none. */
struct dump_tasks {
	struct dumped_task *tasks; /* in the order they came */
	uint32_t nr_tasks, max_tasks;
	struct dumped_stack *stacks; /* no two are equal, but by chance */
	uint32_t nr_stacks, max_stacks;
	struct pair_map by_addr; /* the index of a task by both halves of addr */
	struct pair_map by_hash; /* of a stack, by its contents */
};

/* Free all, there are none then. */
void dump_tasks_done(struct dump_tasks *tasks);

/* Add one, copied but for the functions. 0, or -ENOMEM when it was not added. */
int dump_tasks_add(struct dump_tasks *tasks, const struct task_sample *task);

/* Append a paragraph for each task, or for tasks that are alike. 0 or -ENOMEM. */
int dump_tasks_append(struct text *text, const struct dump_tasks *tasks,
		      struct source_lines *sources);

/* Write the value of a key: an array of objects, as dump_write_json() has them. */
void dump_tasks_write(struct json *json, const struct dump_tasks *tasks,
		      struct source_lines *sources);
