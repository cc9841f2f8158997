/* SPDX-License-Identifier: MIT */
/*
 * The asyncio tasks of a dump. Thousands of tasks usually share few stacks, so each stack is kept
 * and printed once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/dump/dump_frames.h"
#include "output/dump/paragraphs.h"
#include "output/tables/pair_map.h"

#define DUMP_TASKS_NONE UINT32_MAX /* no task */

struct dumped_stack {
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned; NULL: none */
	uint32_t nr_frames;
};

/* A kept task. */
struct dumped_task {
	uint64_t addr;
	char *name; /* owned */
	pid_t tid;
	bool has_thread; /* tid is its event loop's thread, which is alive */
	bool running;
	uint32_t flags;
	int error;
	uint32_t stack;	      /* index into stacks */
	uint64_t *awaited_by; /* owned; task addresses */
	uint32_t nr_awaited_by;
};

/* Empty when all zero. */
struct dump_tasks {
	struct dumped_task *tasks; /* in order of arrival */
	uint32_t nr_tasks, max_tasks;
	struct dumped_stack *stacks; /* distinct, except after a hash collision */
	uint32_t nr_stacks, max_stacks;
	struct pair_map by_addr; /* halves of addr → task */
	struct pair_map by_hash; /* halves of the contents' hash → stack */
};

/* Free everything and empty tasks. */
void dump_tasks_done(struct dump_tasks *tasks);

/* Add a copy of a task; its functions are borrowed. Returns 0, or -ENOMEM if it was not added. */
int dump_tasks_add(struct dump_tasks *tasks, const struct task_sample *task);

/* Returns the index of the task at addr, or DUMP_TASKS_NONE. */
uint32_t dump_tasks_find(const struct dump_tasks *tasks, uint64_t addr);

/*
 * Add a paragraph for each task or group of equal tasks, which names their process unless name is
 * NULL. Returns 0 or -ENOMEM.
 */
int dump_tasks_describe(const struct dump_tasks *tasks, struct source_lines *sources, pid_t pid,
			const char *name, struct paragraphs *paragraphs);

/* Write the value of a key: an array of objects as in dump_write_json(). */
void dump_tasks_write(struct json *json, const struct dump_tasks *tasks,
		      struct source_lines *sources);
