/* SPDX-License-Identifier: MIT */
/*
 * The asyncio tasks of a dump as a tree: below each task those that it awaits, directly or in a
 * gather() or TaskGroup. Tasks with the same stack below one parent, or below parents that are
 * shown as one, are shown as one, so that thousands fit on a screen.
 */
#pragma once

#include "output/dump/dump_tasks.h"

/*
 * Add a paragraph for each root: a task, or equal tasks, that none awaits. A task that several
 * others await is shown below the first. Texts name the process unless name is NULL. Returns 0 or
 * -ENOMEM.
 */
int task_tree_describe(const struct dump_tasks *tasks, struct source_lines *sources, pid_t pid,
		       const char *name, struct paragraphs *paragraphs);
