/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_changes.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "procmem/clock.h"

enum { MAX_THREADS = 4 };

/* What thread 1, 2, … does; line 0 ends the list. */
struct look {
	int32_t line; /* of a file */
	uint64_t nr_runs;
	const char *waiting;
	size_t time_bytes;
	pid_t holder_tid;
};

/* Append what changes when the threads are seen so. */
static void look(struct dump_changes *changes, const struct look *looks, bool are_alone,
		 uint64_t now_s, struct text *ret_text)
{
	static const struct function function = {.qualname = "f", .path = "a.py", .first_line = 1};
	static const struct dumped_layout layout;
	static const struct paragraphs no_tasks;
	struct thread_groups groups = {0};
	struct dumped_thread threads[MAX_THREADS];
	struct frame frames[MAX_THREADS];

	for (pid_t i = 0; i < MAX_THREADS && looks[i].line; i++) {
		const struct grouped_thread member = {.thread = &threads[i], .pid = 1};

		frames[i] = (struct frame){.function = &function, .line = looks[i].line};
		threads[i] = (struct dumped_thread){
			.thread.tid = i + 1,
			.frames = &frames[i],
			.nr_frames = 1,
			.waiting = {.text = (char *)looks[i].waiting,
				    .time_bytes = looks[i].time_bytes,
				    .holder_tid = looks[i].holder_tid,
				    .nr_runs = looks[i].nr_runs},
		};
		cr_assert(zero(int, thread_groups_add(&groups, &member, &layout, are_alone)));
	}
	text_clear(ret_text);
	cr_assert(zero(
		int, dump_changes_append(ret_text, changes, &groups, &no_tasks, now_s * NS_PER_S)));
	thread_groups_done(&groups);
}

struct round {
	struct look looks[MAX_THREADS];
	const char *text;
};

/* Look every ten seconds. */
static void check(const struct round *rounds, size_t nr, bool are_alone)
{
	struct dump_changes changes = {0};
	struct text text = {0};

	for (size_t i = 0; i < nr; i++) {
		look(&changes, rounds[i].looks, are_alone, 100 + 10 * i, &text);
		cr_expect(eq(str, (char *)text_string(&text), (char *)rounds[i].text), "round %zu",
			  i);
	}
	text_done(&text);
	dump_changes_done(&changes);
}

#define AT(line) "  File \"a.py\", line " #line ", in f\n"

Test(dump_changes, tells_new_changed_gone_and_unchanged)
{
	static const struct round rounds[] = {
		{{{1, .nr_runs = 5}, {2, .nr_runs = 7}},
		 "\nNew: Thread 1 (most recent call last):\n" AT(
			 1) "\nNew: Thread 2 (most recent call last):\n" AT(2)},
		{{{1, .nr_runs = 5}, {2, .nr_runs = 7}},
		 "\nUnchanged for 10 s: Thread 1\nUnchanged for 10 s: Thread 2\n"},
		{{{1, .nr_runs = 5}, {3, .nr_runs = 8}},
		 "\nNew: Thread 2 (most recent call last):\n" AT(
			 3) "\nGone: Thread 2\n"
			    "\nUnchanged for 20 s: Thread 1\n"},
		{{{1, .nr_runs = 5}, {3, .nr_runs = 8}, {1, .nr_runs = 1}},
		 "\nWas 1 thread, now 2 threads: \"\" 1, \"\" 3 (most recent call last):\n" AT(
			 1) "\nUnchanged for 10 s: Thread 2\n"},
		{{{3, .nr_runs = 6}, {1, .nr_runs = 9}, {1, .nr_runs = 1}},
		 "\nOther threads: Thread 1 (most recent call last):\n" AT(
			 3) "\nOther threads: 2 threads: \"\" 2, \"\" 3 (most recent call last):\n" AT(1)},
		{{{0}}, "\nGone: Thread 1\nGone: 2 threads: \"\" 2, \"\" 3\n"},
	};

	check(rounds, sizeof(rounds) / sizeof(*rounds), false);
}

/* A thread that ran comes back to the same stack; one that was not seen waiting may have run. */
Test(dump_changes, only_what_has_not_run_is_unchanged)
{
	static const struct round rounds[] = {
		{{{1, .nr_runs = 5}}, "\nNew: Thread 1 (most recent call last):\n" AT(1)},
		{{{1, .nr_runs = 6}}, "\nSame stack again: Thread 1\n"},
		{{{1, .nr_runs = 6}}, "\nUnchanged for 10 s: Thread 1\n"},
		{{{1, .nr_runs = 0}}, "\nSame stack again: Thread 1\n"},
		{{{1, .nr_runs = 0}}, "\nSame stack again: Thread 1\n"},
		{{{1, .nr_runs = 6}}, "\nSame stack again: Thread 1\n"},
		{{{1, .nr_runs = 6}, {1, .nr_runs = 1}},
		 "\nWas 1 thread, now 2 threads: \"\" 1, \"\" 2 (most recent call last):\n" AT(1)},
		{{{1, .nr_runs = 6}, {1, .nr_runs = 2}},
		 "\nSame stack again: 2 threads: \"\" 1, \"\" 2\n"},
	};

	check(rounds, sizeof(rounds) / sizeof(*rounds), false);
}

/* What a thread waits for is compared, but not how much longer it does. */
Test(dump_changes, waits_are_compared)
{
	static const struct round rounds[] = {
		{{{1, 5, "waits for another 9 s", strlen(" for another 9 s"), 0}},
		 "\nNew: Thread 1 (most recent call last):\n" AT(1) "  waits for another 9 s\n"},
		{{{1, 5, "waits for another 12 ms", strlen(" for another 12 ms"), 0}},
		 "\nUnchanged for 10 s: Thread 1\n"},
		{{{1, 6, "waits on x", 0, 0}},
		 "\nOther wait: Thread 1 (most recent call last):\n" AT(1) "  waits on x\n"},
		{{{1, 6, "waits on x", 0, 7}},
		 "\nOther wait: Thread 1 (most recent call last):\n" AT(1) "  waits on x\n"},
		{{{1, 6, NULL, 0, 0}}, "\nOther wait: Thread 1 (most recent call last):\n" AT(1)},
		{{{1, 6, NULL, 0, 0}}, "\nUnchanged for 10 s: Thread 1\n"},
	};

	check(rounds, sizeof(rounds) / sizeof(*rounds), false);
}

Test(dump_changes, threads_that_are_not_grouped_have_changes_of_their_own)
{
	static const struct round rounds[] = {
		{{{1, .nr_runs = 5}, {1, .nr_runs = 6}},
		 "\nNew: Thread 1 (most recent call last):\n" AT(
			 1) "\nNew: Thread 2 (most recent call last):\n" AT(1)},
		{{{1, .nr_runs = 5}, {1, .nr_runs = 6}},
		 "\nUnchanged for 10 s: Thread 1\nUnchanged for 10 s: Thread 2\n"},
		{{{1, .nr_runs = 5}, {2, .nr_runs = 7}},
		 "\nNew: Thread 2 (most recent call last):\n" AT(
			 2) "\nGone: Thread 2\n"
			    "\nUnchanged for 20 s: Thread 1\n"},
	};

	check(rounds, sizeof(rounds) / sizeof(*rounds), true);
}

/* Tasks are found by their whole paragraph, and may always have run. */
Test(dump_changes, tasks_are_new_again_or_gone)
{
	static const struct {
		const char *tasks[3];
		const char *text;
	} rounds[] = {
		{{"Task \"a\" of thread 7 (most recent call last):\n" AT(1),
		  "Task \"b\" of thread 7: runs no Python code\n"},
		 "\nNew: Task \"a\" of thread 7 (most recent call last):\n" AT(
			 1) "\nNew: Task \"b\" of thread 7: runs no Python code\n"},
		{{"Task \"a\" of thread 7 (most recent call last):\n" AT(2),
		  "Task \"b\" of thread 7: runs no Python code\n"},
		 "\nNew: Task \"a\" of thread 7 (most recent call last):\n" AT(
			 2) "\nGone: Task \"a\" of thread 7\n"
			    "\nSame stack again: Task \"b\" of thread 7\n"},
		{{NULL}, "\nGone: Task \"a\" of thread 7\nGone: Task \"b\" of thread 7\n"},
	};
	static const struct thread_groups no_groups;
	struct dump_changes changes = {0};
	struct text text = {0};

	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		struct paragraphs tasks = {.texts = (char **)rounds[i].tasks};

		while (rounds[i].tasks[tasks.nr])
			tasks.nr++;
		text_clear(&text);
		cr_assert(zero(int, dump_changes_append(&text, &changes, &no_groups, &tasks, i)));
		cr_expect(eq(str, (char *)text_string(&text), (char *)rounds[i].text), "round %zu",
			  i);
	}
	text_done(&text);
	dump_changes_done(&changes);
}
