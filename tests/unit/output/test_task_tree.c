/* SPDX-License-Identifier: MIT */
#include "output/dump/task_tree.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AWAITERS = 2, MAX_TASKS = 8, MAX_LONG = 64 };

/* A task, whose address is its place in the list plus 1. */
struct given {
	const char *name, *function; /* its only frame */
	uint64_t awaited_by[MAX_AWAITERS];
	bool running;
	int error;
};

static struct function functions[3] = {
	{.id = 0, .qualname = "f", .path = "a.py"},
	{.id = 1, .qualname = "g", .path = "a.py"},
	{.id = 2, .qualname = "h", .path = "a.py"},
};

static const struct sample_thread thread = {.tid = 7, .name = "loop"};

static void add(struct dump_tasks *tasks, const struct given *given, uint64_t addr)
{
	const struct function *function =
		&functions[given->function ? (size_t)(given->function[0] - 'f') : 0];
	const struct frame frame = {.function = function, .line = 1};
	struct task_sample sample = {
		.addr = addr,
		.name = given->name,
		.thread = &thread,
		.running = given->running,
		.frames = &frame,
		.nr_frames = given->function ? 1 : 0,
		.error = given->error,
		.awaited_by = given->awaited_by,
	};

	while (sample.nr_awaited_by < MAX_AWAITERS && given->awaited_by[sample.nr_awaited_by])
		sample.nr_awaited_by++;
	cr_assert(zero(int, dump_tasks_add(tasks, &sample)));
}

/* Returns the text, allocated. */
static char *describe(const struct dump_tasks *tasks, const char *process)
{
	struct paragraphs paragraphs = {0};
	struct text text = {0};

	cr_assert(zero(int, task_tree_describe(tasks, NULL, 5, process, &paragraphs)));
	paragraphs_append(&text, &paragraphs);
	paragraphs_done(&paragraphs);
	cr_assert(zero(int, text.error));
	return text.bytes ? text.bytes : strdup("");
}

static const struct {
	const char *name;
	struct given tasks[MAX_TASKS];
	const char *process;
	const char *text;
} cases[] = {
	{.name = "no tasks", .text = ""},
	{.name = "two roots",
	 .tasks = {{"a", "f"}, {"b", "g"}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "\nTask \"b\" of thread 7\n  File \"a.py\", line 1, in g\n"},
	{.name = "of a process",
	 .tasks = {{"a", "f"}},
	 .process = "python x.py",
	 .text = "\nTask \"a\" of thread 7 of process 5 python x.py\n"
		 "  File \"a.py\", line 1, in f\n"},
	{.name = "equal tasks of equal parents, and names only once",
	 .tasks = {{"a", "f"},
		   {"b", "f"},
		   {"c", "g", {1}},
		   {"c", "g", {2}},
		   {"d", "g", {1}},
		   {"e", "h", {1}}},
	 .text = "\n2 tasks: \"a\", \"b\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "  3 tasks: \"c\", \"d\"\n    File \"a.py\", line 1, in g\n"
		 "  Task \"e\"\n    File \"a.py\", line 1, in h\n"},
	{.name = "a task that two await is there once",
	 .tasks = {{"a", "f"}, {"b", "g"}, {"c", "h", {1, 2}}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "  Task \"c\", awaited by 2 tasks\n    File \"a.py\", line 1, in h\n"
		 "\nTask \"b\" of thread 7\n  File \"a.py\", line 1, in g\n"},
	{.name = "children before their parents, of which one is unknown",
	 .tasks = {{"c", "f", {2}}, {"a", "g", {99}}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in g\n"
		 "  Task \"c\"\n    File \"a.py\", line 1, in f\n"},
	{.name = "a cycle",
	 .tasks = {{"a", "f", {2}}, {"b", "g", {1}}, {"c", "h", {3}}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "  Task \"b\"\n    File \"a.py\", line 1, in g\n"
		 "\nTask \"c\" of thread 7\n  File \"a.py\", line 1, in h\n"},
	{.name = "two cycles",
	 .tasks = {{"a", "f", {2}},
		   {"b", "g", {1}},
		   {"c", "h", {2}},
		   {"d", "f", {5}},
		   {"e", "f", {4}}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "  Task \"b\"\n    File \"a.py\", line 1, in g\n"
		 "    Task \"c\"\n      File \"a.py\", line 1, in h\n"
		 "\nTask \"d\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "  Task \"e\"\n    File \"a.py\", line 1, in f\n"},
	{.name = "what differs is not one",
	 .tasks = {{"a", "f"},
		   {"b", "f", .running = true},
		   {"c", "f", .error = -EFAULT},
		   {"", NULL}},
	 .text = "\nTask \"a\" of thread 7\n  File \"a.py\", line 1, in f\n"
		 "\nTask \"b\" of thread 7, running\n  File \"a.py\", line 1, in f\n"
		 "\nTask \"c\" of thread 7\n"
		 "  (the chain of awaits is incomplete: its memory could not be read)\n"
		 "  File \"a.py\", line 1, in f\n"
		 "\nTask 0x4 of thread 7\n"},
};

Test(task_tree, describes_what_awaits_what)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct dump_tasks tasks = {0};
		char *text;

		for (uint32_t j = 0; j < MAX_TASKS && cases[i].tasks[j].name; j++)
			add(&tasks, &cases[i].tasks[j], j + 1);
		text = describe(&tasks, cases[i].process);
		cr_expect(eq(str, text, (char *)cases[i].text), "%s", cases[i].name);
		free(text);
		dump_tasks_done(&tasks);
	}
}

/* A chain of tasks that is longer than the tree may be deep, and many names. */
Test(task_tree, is_bounded)
{
	struct dump_tasks tasks = {0}, equal = {0};
	char names[MAX_LONG][8];
	char *text;

	for (uint32_t i = 0; i < MAX_LONG; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%u", i);
		add(&tasks, &(struct given){.name = names[i], .function = "f", .awaited_by = {i}},
		    i + 1);
		add(&equal, &(struct given){.name = names[i], .function = "f"}, i + 1);
	}
	text = describe(&tasks, NULL);
	cr_expect(ne(ptr, strstr(text, "Task \"n32\"\n"), NULL));
	cr_expect(eq(ptr, strstr(text, "Task \"n33\""), NULL));
	cr_expect(eq(ptr, strstr(text, "\nTask \"n34\""), NULL));
	cr_expect(ne(ptr, strstr(text, "… and 31 more below\n"), NULL));
	free(text);
	text = describe(&equal, NULL);
	cr_expect(ne(ptr, strstr(text, "64 tasks: \"n0\", \"n1\", \"n2\", \"n3\", \"n4\", … of"),
		     NULL));
	free(text);
	dump_tasks_done(&tasks);
	dump_tasks_done(&equal);
}
