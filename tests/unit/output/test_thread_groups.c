/* SPDX-License-Identifier: MIT */
#include "output/dump/thread_groups.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static const struct dumped_layout layout;

/* A thread whose only frame is at a line; line 0: none. */
struct case_thread {
	pid_t pid, tid;
	int32_t line;
	const char *process;
	const char *waiting;
	uint32_t flags;
};

enum { MAX_CASE_THREADS = 40 };

/* Group threads and append them. */
static void group(const struct case_thread *threads, size_t nr, bool alone, struct text *ret_text)
{
	static const struct function function = {.qualname = "f", .path = "a.py", .first_line = 1};
	static struct dumped_thread dumped[MAX_CASE_THREADS];
	struct frame frames[MAX_CASE_THREADS];
	struct thread_groups groups = {0};

	for (size_t i = 0; i < nr; i++) {
		struct grouped_thread member = {
			.thread = &dumped[i], .process = threads[i].process, .pid = threads[i].pid};

		frames[i] = (struct frame){.function = &function, .line = threads[i].line};
		dumped[i] = (struct dumped_thread){
			.thread = {.tid = threads[i].tid},
			.flags = threads[i].flags,
			.frames = &frames[i],
			.nr_frames = threads[i].line != 0,
			.waiting.text = (char *)threads[i].waiting,
		};
		(void)snprintf(dumped[i].thread.name, sizeof(dumped[i].thread.name), "T%zu", i);
		cr_assert(zero(int, thread_groups_add(&groups, &member, &layout, alone)));
	}
	thread_groups_append(ret_text, &groups);
	thread_groups_done(&groups);
}

Test(thread_groups, show_equal_stacks_once)
{
	static const struct {
		struct case_thread threads[4];
		bool alone;
		const char *text;
	} cases[] = {
		{{{7, 7, 1, NULL, NULL, 0}},
		 false,
		 "\nThread 7 \"T0\" (most recent call last):\n  File \"a.py\", line 1, in f\n"},
		{{{7, 7, 0, NULL, "waits in read", 0}},
		 false,
		 "\nThread 7 \"T0\": runs no Python code\n  waits in read\n"},
		{{{7, 7, 1, "a", NULL, SAMPLE_HOLDS_GIL}},
		 false,
		 "\nProcess 7 a, holds the GIL (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"},
		{{{7, 8, 1, "a", NULL, 0}},
		 false,
		 "\nThread 8 \"T0\" of process 7 a (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"},
		{{{7, 7, 1, NULL, NULL, 0}, {7, 8, 2, NULL, NULL, 0}, {7, 9, 1, NULL, NULL, 0}},
		 false,
		 "\n2 threads: \"T0\" 7, \"T2\" 9 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"
		 "\nThread 8 \"T1\" (most recent call last):\n"
		 "  File \"a.py\", line 2, in f\n"},
		{{{7, 7, 1, NULL, NULL, 0}, {7, 8, 1, NULL, NULL, 0}},
		 true,
		 "\nThread 7 \"T0\" (most recent call last):\n  File \"a.py\", line 1, in f\n"
		 "\nThread 8 \"T1\" (most recent call last):\n  File \"a.py\", line 1, in f\n"},
		{{{7, 7, 1, "a", NULL, 0}, {8, 8, 1, "a", NULL, 0}, {8, 9, 1, "a", NULL, 0}},
		 false,
		 "\n3 threads in 2 processes: a 7, 8, \"T2\" 9 of a 8 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"},
		{{{7, 7, 1, "a", NULL, 0}, {7, 8, 1, "a", NULL, 0}},
		 false,
		 "\n2 threads of process 7 a: \"T0\" 7, \"T1\" 8 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"},
		{{{7, 7, 1, NULL, "waits in read", SAMPLE_HOLDS_GIL},
		  {7, 8, 1, NULL, "waits in read", 0}},
		 false,
		 "\n2 threads: \"T0\" 7 (holds the GIL), \"T1\" 8 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n  waits in read\n"},
		{{{7, 7, 1, NULL, "waits in read", 0}, {7, 8, 1, NULL, "waits\nin write", 0}},
		 false,
		 "\n2 threads: \"T0\" 7, \"T1\" 8 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n  waits in read (7)\n  waits\\x0ain write (8)\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text text = {0};
		size_t nr = 0;

		while (nr < 4 && cases[i].threads[nr].tid)
			nr++;
		group(cases[i].threads, nr, cases[i].alone, &text);
		cr_expect(eq(str, (char *)text_string(&text), (char *)cases[i].text), "case %zu",
			  i);
		text_done(&text);
	}
}

Test(thread_groups, list_only_the_first_of_many)
{
	struct case_thread threads[MAX_CASE_THREADS];
	struct text text = {0};

	for (pid_t i = 0; i < MAX_CASE_THREADS; i++)
		threads[i] = (struct case_thread){7, i + 100, 1, NULL, NULL, 0};
	group(threads, MAX_CASE_THREADS, false, &text);
	cr_expect(ne(ptr, strstr(text_string(&text), "40 threads: "), NULL));
	cr_expect(ne(ptr, strstr(text_string(&text), "\"T11\" 111 and 28 more ("), NULL), "%s",
		  text_string(&text));
	text_done(&text);
}
