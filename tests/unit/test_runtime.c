/* SPDX-License-Identifier: MIT */
#include "sampler/python/runtime.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_memory.h"

static int gone(struct remote_memory *memory)
{
	(void)memory;
	return -ESRCH;
}

static int still_there(struct remote_memory *memory)
{
	(void)memory;
	return 0;
}

/* Every read after the first one finds no memory any more. */
static void end_now(struct fake_memory *fake, size_t range_index)
{
	(void)range_index;
	fake->error = -ESRCH;
}

/* Mappings of no file, so that none is opened: of no Python, and of two by their names. */
static struct mapping no_python = {.start = 0x1000, .end = 0x2000, .readable = true, .path = ""};
static struct mapping old_python = {
	.start = 0x1000,
	.end = 0x2000,
	.readable = true,
	.executable = true,
	.path = "/usr/bin/python2.7",
};
static struct mapping python = {
	.start = 0x1000,
	.end = 0x2000,
	.readable = true,
	.executable = true,
	.path = "/usr/lib/libpython3.6m.so.1.0",
};

/* Whatever would be said of the process, if it has ended meanwhile that is the answer. */
Test(runtime, refuses_nothing_that_has_ended)
{
	static const struct {
		const char *name;
		struct maps maps;
		int (*check)(struct remote_memory *memory);
		void (*before_range)(struct fake_memory *fake, size_t range_index);
		int expected;
	} cases[] = {
		{"no Python",
		 {.mappings = &no_python, .nr_mappings = 1},
		 still_there,
		 NULL,
		 -ENOENT},
		{"idle", {.mappings = &python, .nr_mappings = 1}, still_there, NULL, -EAGAIN},
		{"idle, gone", {.mappings = &python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"old", {.mappings = &old_python, .nr_mappings = 1}, still_there, NULL, -ENOTSUP},
		{"no check", {.mappings = &old_python, .nr_mappings = 1}, NULL, NULL, -ENOTSUP},
		{"gone", {.mappings = &no_python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"old, gone", {.mappings = &old_python, .nr_mappings = 1}, gone, NULL, -ESRCH},
		{"ends", {.mappings = &no_python, .nr_mappings = 1}, still_there, end_now, -ESRCH},
		{"old, ends", {.mappings = &old_python, .nr_mappings = 1}, NULL, end_now, -ESRCH},
		{"ended before its maps were read", {.nr_mappings = 0}, still_there, NULL, -ESRCH},
	};
	const struct process process = {.pid = 1, .proc_fd = -1, .memory_fd = -1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message message = {0};
		struct runtime runtime;
		struct fake_memory fake;

		fake_memory_init(&fake);
		struct remote_memory_ops ops = *fake.memory.ops;

		ops.check = cases[i].check;
		fake.memory.ops = &ops;
		fake.before_range = cases[i].before_range;
		cr_expect(
			eq(int,
			   runtime_find(&process, &cases[i].maps, &fake.memory, &runtime, &message),
			   cases[i].expected),
			"%s", cases[i].name);
		cr_expect(eq(int, message.text[0] != '\0', cases[i].expected != -ESRCH), "%s",
			  cases[i].name);
		fake_memory_done(&fake);
	}
}
