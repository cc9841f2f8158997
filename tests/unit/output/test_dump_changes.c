/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_changes.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "procmem/clock.h"

/* Append what changes when threads 1, 2, … are at these lines of a file; line 0 ends the list. */
static void look(struct dump_changes *changes, const int32_t *lines, uint64_t now_s,
		 struct text *ret_text)
{
	static const struct function function = {.qualname = "f", .path = "a.py", .first_line = 1};
	static const struct dumped_layout layout;
	struct thread_groups groups = {0};
	struct dumped_thread threads[4];
	struct frame frames[4];

	for (pid_t i = 0; lines[i]; i++) {
		const struct grouped_thread member = {.thread = &threads[i], .pid = 1};

		frames[i] = (struct frame){.function = &function, .line = lines[i]};
		threads[i] = (struct dumped_thread){
			.thread.tid = i + 1, .frames = &frames[i], .nr_frames = 1};
		cr_assert(zero(int, thread_groups_add(&groups, &member, &layout, false)));
	}
	text_clear(ret_text);
	cr_assert(zero(int, dump_changes_append(ret_text, changes, &groups, now_s * NS_PER_S)));
	thread_groups_done(&groups);
}

Test(dump_changes, tells_new_changed_gone_and_unchanged)
{
	static const struct {
		int32_t lines[4];
		const char *text;
	} rounds[] = {
		{{1, 2},
		 "\nNew: Thread 1 (most recent call last):\n  File \"a.py\", line 1, in f\n"
		 "\nNew: Thread 2 (most recent call last):\n  File \"a.py\", line 2, in f\n"},
		{{1, 2}, "\nUnchanged for 10 s: Thread 1\nUnchanged for 10 s: Thread 2\n"},
		{{1, 3},
		 "\nNew: Thread 2 (most recent call last):\n  File \"a.py\", line 3, in f\n"
		 "\nGone: Thread 2\n"
		 "\nUnchanged for 20 s: Thread 1\n"},
		{{1, 3, 1},
		 "\nWas 1 thread, now 2 threads: \"\" 1, \"\" 3 (most recent call last):\n"
		 "  File \"a.py\", line 1, in f\n"
		 "\nUnchanged for 10 s: Thread 2\n"},
		{{0}, "\nGone: 2 threads: \"\" 1, \"\" 3\nGone: Thread 2\n"},
	};
	struct dump_changes changes = {0};
	struct text text = {0};

	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		look(&changes, rounds[i].lines, 100 + 10 * i, &text);
		cr_expect(eq(str, (char *)text_string(&text), (char *)rounds[i].text), "round %zu",
			  i);
	}
	text_done(&text);
	dump_changes_done(&changes);
}
