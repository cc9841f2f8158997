/* SPDX-License-Identifier: MIT */
/*
 * The dumps of a process and its descendants in one: equal stacks of all their threads are shown
 * once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "output/dump/dump.h"
#include "output/run/run_info.h"

/* A process of the tree; everything is borrowed. */
struct tree_process {
	struct dump *dump;    /* NULL: there is none */
	struct run_info info; /* pid and command_line are set in any case */
	pid_t parent_pid;     /* 0 for the root */
	const char *problem;  /* without a dump: why, as a sentence; NULL: it runs no Python */
};

/* Everything is borrowed. */
struct tree_dump {
	const struct tree_process *processes; /* the root first */
	size_t nr_processes;
	const char *const *findings; /* conclusions, such as a deadlock: sentences */
	size_t nr_findings;
};

/*
 * Write the dump for people: the processes, the findings, the stacks, the asyncio tasks, and native
 * threads if they are included. Not flushed. Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int tree_dump_write_text(const struct tree_dump *tree, FILE *out);

/*
 * Write one JSON object and flush it. Returns 0, -ENOMEM, or the stream's error as negative errno.
 * Its members:
 *
 * - processes: an array of the members of dump_write_json(), after parent_pid (null for the root);
 * - others: an array of pid, command, parent_pid, problem (null: it runs no Python);
 * - findings: an array of strings;
 * - groups: an array of count and threads, an array of pid and tid (thread_groups_write()).
 */
int tree_dump_write_json(const struct tree_dump *tree, FILE *out);

/*
 * Write the dump as that of a tree, or else that of its only process, as JSON or text. Errors of
 * the functions above.
 */
int tree_dump_write(const struct tree_dump *tree, bool is_tree, bool as_json, FILE *out);

/*
 * Add all threads to groups, or all tasks to paragraphs, with the names of processes on request.
 * Returns 0 or -ENOMEM.
 */
int tree_dump_group(const struct tree_dump *tree, bool with_names, struct thread_groups *groups);
int tree_dump_describe_tasks(const struct tree_dump *tree, bool with_names,
			     struct paragraphs *paragraphs);
