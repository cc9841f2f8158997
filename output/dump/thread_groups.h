/* SPDX-License-Identifier: MIT */
/*
 * The threads of a dump, of one process or several, with equal stacks shown once. Groups are in the
 * order in which the first of their threads was added.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/dump/dumped_thread.h"
#include "output/tables/string_table.h"
#include "output/text/json.h"
#include "output/text/text.h"

/* A thread and its process; everything is borrowed. */
struct grouped_thread {
	const struct dumped_thread *thread;
	const char *process; /* its process's name, unescaped; NULL: not shown */
	pid_t pid;	     /* its process */
};

struct thread_group {
	char *stack; /* owned; whole lines, as printed */
	bool has_stack;
	bool is_alone; /* other threads with this stack are in groups of their own */
	struct grouped_thread *threads; /* owned */
	uint32_t nr_threads, max_threads;
};

/* Empty when all zero. */
struct thread_groups {
	struct thread_group *groups; /* owned */
	uint32_t nr_groups, max_groups;
	/* Private. */
	struct string_table stacks; /* of the groups that others may join */
	uint32_t *by_stack;	    /* owned; a stack's number → its group */
	uint32_t max_by_stack;
};

/* Free and empty the groups. Accepts NULL. */
void thread_groups_done(struct thread_groups *groups);

/*
 * Add a thread: to the group of its stack, or, if is_alone, to one of its own. Returns 0; or
 * -ENOMEM, after which none may be added.
 */
int thread_groups_add(struct thread_groups *groups, const struct grouped_thread *thread,
		      const struct dumped_layout *layout, bool is_alone);

/*
 * Append a paragraph for each group: its threads, of which a large one lists only the first, their
 * stack, and what they wait in. An empty line precedes each.
 */
void thread_groups_append(struct text *text, const struct thread_groups *groups);
/* The same for one group, without the empty line. */
void thread_group_append(struct text *text, const struct thread_group *group);

/* Append the threads of a group as its paragraph begins: "3 threads: …", without a newline. */
void thread_group_append_threads(struct text *text, const struct thread_group *group);

/* Write the value of a key: an array of objects with count and threads, each with pid and tid. */
void thread_groups_write(struct json *json, const struct thread_groups *groups);
