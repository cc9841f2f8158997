/* SPDX-License-Identifier: MIT */
#include "output/dump.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 4096 };

/* What is written of one thread with that outcome. */
static void write_one(uint32_t flags, int error,
		      int (*write)(const struct dump *, const struct run_info *, FILE *),
		      char ret_text[MAX_TEXT_BYTES])
{
	const struct function function = {.qualname = "f", .path = "a.py", .first_line = 1};
	const struct frame frame = {.function = &function, .line = 2};
	const struct sample_thread thread = {.tid = 7, .name = "worker"};
	const struct sample sample = {
		.thread = &thread,
		.frames = &frame,
		.nr_frames = 1,
		.flags = flags,
		.error = error,
	};
	const struct run_info info = {.command_line = "python a.py", .pid = 7, .python = "3.14.1"};
	struct dump *dump = dump_create();
	FILE *out = fmemopen(ret_text, MAX_TEXT_BYTES, "w");

	cr_assert(ne(ptr, dump, NULL));
	cr_assert(ne(ptr, out, NULL));
	cr_assert(zero(int, dump_sink(dump)->ops->sample(dump_sink(dump), &sample)));
	cr_assert(zero(int, write(dump, &info, out)));
	(void)fclose(out);
	dump_destroy(dump);
}

Test(dump, tells_how_sure_a_stack_is)
{
	static const struct {
		uint32_t flags;
		int error;
		const char *text, *json;
	} cases[] = {
		{0, 0, "call last):\n  File \"a.py\", line 2, in f\n", NULL},
		{SAMPLE_UNPROVEN, 0, "may not belong together", NULL},
		{SAMPLE_UNPROVEN, -EFAULT, "to the bottom: memory that had to be there was not",
		 "memory that had to be there was not"},
		{SAMPLE_UNPROVEN, -E2BIG, "go in a circle", "go in a circle"},
		{SAMPLE_UNPROVEN, -EBADMSG, "do not hang together", "do not hang together"},
		{SAMPLE_UNPROVEN, -EAGAIN, "do not hang together", "do not hang together"},
	};
	char text[MAX_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *proven = cases[i].flags ? "\"proven\": false" : "\"proven\": true";

		write_one(cases[i].flags, cases[i].error, dump_write_text, text);
		cr_expect(ne(ptr, strstr(text, cases[i].text), NULL), "%s", text);
		write_one(cases[i].flags, cases[i].error, dump_write_json, text);
		cr_expect(ne(ptr, strstr(text, proven), NULL), "%s", text);
		cr_expect(ne(ptr, strstr(text, cases[i].json ? cases[i].json : "\"error\": null"),
			     NULL),
			  "%s", text);
	}
}
