/* SPDX-License-Identifier: MIT */
#include "output/dump/task_tree.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dumped_thread.h"
#include "output/profile/label.h"
#include "procmem/array.h"

/* Limit on the names that are listed of equal tasks. */
enum { MAX_NAMES = 5 };

/* What tasks this deep in the tree await is only counted. */
enum { MAX_DEPTH = 32, INDENT = 2 };

/* Equal tasks. */
struct node {
	uint32_t first, last; /* task indices */
	uint32_t nr;
};

struct tree {
	const struct dump_tasks *tasks; /* borrowed */
	struct source_lines *sources;	/* borrowed */
	pid_t pid;
	const char *process; /* borrowed; NULL: not named */
	/* The tasks that task i awaits are awaited[first[i]] to awaited[first[i + 1] - 1]. */
	uint32_t *first, *awaited; /* owned */
	uint32_t *next;		   /* owned; by task: the next one of its node */
	bool *is_placed;	   /* owned; by task */
};

/*
 * Count how many tasks each one awaits, in the element of first after its own, or put them into
 * awaited. Returns the sum.
 */
static uint32_t fill_awaited(struct tree *tree, bool counts)
{
	const struct dump_tasks *tasks = tree->tasks;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < tasks->nr_tasks; i++) {
		const struct dumped_task *task = &tasks->tasks[i];

		for (uint32_t j = 0; j < task->nr_awaited_by; j++) {
			const uint32_t parent = dump_tasks_find(tasks, task->awaited_by[j]);

			if (parent == DUMP_TASKS_NONE)
				continue;
			if (counts)
				tree->first[parent + 1]++;
			else
				tree->awaited[tree->first[parent]++] = i;
			nr++;
		}
	}
	return nr;
}

/* Find out which tasks await which. Returns 0 or -ENOMEM. */
static int tree_init(struct tree *tree)
{
	const uint32_t nr_tasks = tree->tasks->nr_tasks;
	uint32_t nr;

	tree->first = calloc(nr_tasks + 2ull, sizeof(*tree->first));
	tree->next = calloc(nr_tasks + 1ull, sizeof(*tree->next));
	tree->is_placed = calloc(nr_tasks + 1ull, sizeof(*tree->is_placed));
	if (!tree->first || !tree->next || !tree->is_placed)
		return -ENOMEM;
	nr = fill_awaited(tree, true);
	tree->awaited = calloc(nr + 1ull, sizeof(*tree->awaited));
	if (!tree->awaited)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_tasks; i++)
		tree->first[i + 1] += tree->first[i];
	(void)fill_awaited(tree, false);
	/* Each first is now that of the next task. */
	memmove(tree->first + 1, tree->first, nr_tasks * sizeof(*tree->first));
	tree->first[0] = 0;
	return 0;
}

static void tree_done(struct tree *tree)
{
	free(tree->first);
	free(tree->awaited);
	free(tree->next);
	free(tree->is_placed);
}

/* The text. */

static void append_name(struct text *text, const struct dumped_task *task)
{
	if (!task->name[0]) {
		text_printf(text, "0x%" PRIx64, task->addr);
		return;
	}
	text_puts(text, "\"");
	label_append_string(text, task->name);
	text_puts(text, "\"");
}

/* Append the first names of the tasks of a node, each once. */
static void append_names(struct text *text, const struct tree *tree, const struct node *node)
{
	const struct dumped_task *named[MAX_NAMES];
	uint32_t nr_named = 0, i = node->first;

	for (uint32_t nr = 0; nr < node->nr; nr++, i = tree->next[i]) {
		const struct dumped_task *task = &tree->tasks->tasks[i];
		uint32_t n = 0;

		while (n < nr_named && (!task->name[0] || strcmp(named[n]->name, task->name) != 0))
			n++;
		if (n < nr_named)
			continue;
		if (n == MAX_NAMES) {
			text_puts(text, ", …");
			return;
		}
		text_puts(text, n ? ", " : "");
		append_name(text, task);
		named[nr_named++] = task;
	}
}

static void append_heading(struct text *text, const struct tree *tree, const struct node *node,
			   bool is_root)
{
	const struct dumped_task *task = &tree->tasks->tasks[node->first];

	if (node->nr == 1)
		text_puts(text, "Task ");
	else
		text_printf(text, "%" PRIu32 " tasks: ", node->nr);
	append_names(text, tree, node);
	if (is_root && task->has_thread)
		text_printf(text, " of thread %d", task->tid);
	else if (is_root)
		text_puts(text, " of a loop that does not run");
	if (is_root)
		dumped_process_append(text, tree->pid, tree->process);
	if (task->running)
		text_puts(text, ", running");
	if (node->nr == 1 && task->nr_awaited_by > 1)
		text_printf(text, ", awaited by %" PRIu32 " tasks", task->nr_awaited_by);
	text_puts(text, "\n");
}

/* Append lines, each after that many spaces. */
static void append_indented(struct text *text, const struct text *lines, size_t nr_spaces)
{
	const char *line = text_string(lines);

	while (*line) {
		const size_t length = strcspn(line, "\n");

		text_pad(text, nr_spaces);
		text_append(text, line, length);
		text_puts(text, "\n");
		line += length + (line[length] == '\n');
	}
	if (lines->error)
		text->error = lines->error;
}

static void append_node(struct text *text, const struct tree *tree, const struct node *node,
			unsigned int depth)
{
	const struct dumped_task *task = &tree->tasks->tasks[node->first];
	const struct dumped_stack *stack = &tree->tasks->stacks[task->stack];
	const struct dump_frames frames = {
		.frames = stack->frames,
		.details = stack->details,
		.nr = stack->nr_frames,
		.sources = tree->sources,
	};
	struct text lines = {0};

	append_heading(&lines, tree, node, depth == 0);
	if (task->error)
		text_printf(&lines, "  (the chain of awaits is incomplete: %s)\n",
			    dump_error_text(task->error));
	else if (task->flags & SAMPLE_UNPROVEN)
		text_puts(&lines, "  (read while it ran: these frames may not belong together)\n");
	dump_frames_append(&lines, &frames);
	append_indented(text, &lines, (size_t)depth * INDENT);
	text_done(&lines);
}

/* Grouping. */

static bool may_group(const struct dumped_task *task)
{
	return !task->running && !task->error && !(task->flags & SAMPLE_UNPROVEN);
}

/* Equal tasks below one node. */
struct siblings {
	struct node *nodes; /* owned */
	uint32_t nr, max;
	struct pair_map by_place; /* (stack, thread) → node */
};

/* Place a task among its siblings. Returns 0 or -ENOMEM. */
static int place(struct tree *tree, struct siblings *siblings, uint32_t index)
{
	const struct dumped_task *task = &tree->tasks->tasks[index];
	const uint32_t thread = task->has_thread ? (uint32_t)task->tid : UINT32_MAX;
	const bool is_grouped = may_group(task);
	const uint32_t known = is_grouped ? pair_map_find(&siblings->by_place, task->stack, thread)
					  : PAIR_MAP_NONE;
	struct node *nodes;

	tree->is_placed[index] = true;
	if (known != PAIR_MAP_NONE) {
		struct node *node = &siblings->nodes[known];

		assert(known < siblings->nr && node);
		tree->next[node->last] = index;
		node->last = index;
		node->nr++;
		return 0;
	}
	nodes = array_reserve(siblings->nodes, siblings->nr + 1, &siblings->max, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	siblings->nodes = nodes;
	nodes[siblings->nr++] = (struct node){.first = index, .last = index, .nr = 1};
	return is_grouped ? pair_map_add(&siblings->by_place, task->stack, thread, siblings->nr - 1)
			  : 0;
}

static void siblings_done(struct siblings *siblings)
{
	free(siblings->nodes);
	pair_map_done(&siblings->by_place);
}

/* Place all that the tasks of a node await, and were not placed yet. Returns 0 or -ENOMEM. */
static int place_awaited(struct tree *tree, const struct node *node, struct siblings *siblings)
{
	uint32_t task = node->first;
	int err = 0;

	for (uint32_t nr = 0; !err && nr < node->nr; nr++, task = tree->next[task]) {
		for (uint32_t i = tree->first[task]; !err && i < tree->first[task + 1]; i++)
			if (!tree->is_placed[tree->awaited[i]])
				err = place(tree, siblings, tree->awaited[i]);
	}
	return err;
}

/* Count the tasks of siblings and all that is below them. Place the latter: none is shown. */
static uint32_t count_all(struct tree *tree, const struct siblings *siblings)
{
	uint32_t top = DUMP_TASKS_NONE, nr = 0;

	/* Tasks that are not shown need no next one of their node: it links those to be counted. */
	for (uint32_t i = 0; i < siblings->nr; i++) {
		tree->next[siblings->nodes[i].last] = top;
		top = siblings->nodes[i].first;
	}
	for (; top != DUMP_TASKS_NONE; nr++) {
		const uint32_t task = top;

		top = tree->next[task];
		for (uint32_t i = tree->first[task]; i < tree->first[task + 1]; i++) {
			const uint32_t awaited = tree->awaited[i];

			if (tree->is_placed[awaited])
				continue;
			tree->is_placed[awaited] = true;
			tree->next[awaited] = top;
			top = awaited;
		}
	}
	return nr;
}

/* Append a node and what is below it. Returns 0 or -ENOMEM. */
static int append_all(struct text *text, struct tree *tree, const struct node *node,
		      unsigned int depth)
{
	struct siblings siblings = {0};
	int err;

	append_node(text, tree, node, depth);
	err = place_awaited(tree, node, &siblings);
	if (!err && depth == MAX_DEPTH && siblings.nr) {
		text_pad(text, (depth + 1ull) * INDENT);
		text_printf(text, "… and %" PRIu32 " more below\n", count_all(tree, &siblings));
		siblings.nr = 0;
	}
	for (uint32_t i = 0; !err && i < siblings.nr; i++)
		err = append_all(text, tree, &siblings.nodes[i], depth + 1);
	siblings_done(&siblings);
	return err;
}

/* Add a paragraph for each root. Returns 0 or -ENOMEM. */
static int add_roots(struct tree *tree, const struct siblings *roots, struct paragraphs *paragraphs)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < roots->nr; i++) {
		struct text text = {0};

		err = append_all(&text, tree, &roots->nodes[i], 0);
		if (!err)
			err = paragraphs_add(paragraphs, &text);
		text_done(&text);
	}
	return err;
}

/* Whether a task that is known awaits the one with that index. */
static bool is_awaited(const struct dump_tasks *tasks, uint32_t index)
{
	const struct dumped_task *task = &tasks->tasks[index];

	for (uint32_t i = 0; i < task->nr_awaited_by; i++)
		if (dump_tasks_find(tasks, task->awaited_by[i]) != DUMP_TASKS_NONE)
			return true;
	return false;
}

/* Add paragraphs for all tasks that none awaits, then for the cycles of awaits, which have none. */
static int describe(struct tree *tree, struct paragraphs *paragraphs)
{
	const struct dump_tasks *tasks = tree->tasks;
	struct siblings roots = {0};
	int err = 0;

	for (uint32_t i = 0; !err && i < tasks->nr_tasks; i++)
		if (!is_awaited(tasks, i))
			err = place(tree, &roots, i);
	if (!err)
		err = add_roots(tree, &roots, paragraphs);
	siblings_done(&roots);
	for (uint32_t i = 0; !err && i < tasks->nr_tasks; i++) {
		struct siblings one = {0};

		if (tree->is_placed[i])
			continue;
		err = place(tree, &one, i);
		if (!err)
			err = add_roots(tree, &one, paragraphs);
		siblings_done(&one);
	}
	return err;
}

int task_tree_describe(const struct dump_tasks *tasks, struct source_lines *sources, pid_t pid,
		       const char *name, struct paragraphs *paragraphs)
{
	struct tree tree = {.tasks = tasks, .sources = sources, .pid = pid, .process = name};
	int err = tree_init(&tree);

	if (!err)
		err = describe(&tree, paragraphs);
	tree_done(&tree);
	return err;
}
