/* SPDX-License-Identifier: MIT */
#include "output/dump/dump.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 4096 };

/* Write a dump of one thread with these flags and this error. */
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
	const struct run_info info = {
		.target.command_line = "python a.py", .target.pid = 7, .python.version = "3.14.1"};
	struct dump *dump = dump_create();
	FILE *out = fmemopen(ret_text, MAX_TEXT_BYTES, "w");

	cr_assert(ne(ptr, dump, NULL));
	cr_assert(ne(ptr, out, NULL));
	cr_assert(zero(int, dump_sink(dump)->ops->sample(dump_sink(dump), &sample)));
	cr_assert(zero(int, write(dump, &info, out)));
	(void)fclose(out);
	dump_destroy(dump);
}

Test(dump, reports_the_reliability_of_a_stack)
{
	static const struct {
		uint32_t flags;
		int error;
		const char *text, *json;
	} cases[] = {
		{0, 0, "call last):\n  File \"a.py\", line 2, in f\n", NULL},
		{SAMPLE_UNPROVEN, 0, "may not belong together", NULL},
		{SAMPLE_UNPROVEN, -EFAULT, "incomplete: its memory could not be read",
		 "its memory could not be read"},
		{SAMPLE_UNPROVEN, -E2BIG, "form a cycle", "form a cycle"},
		{SAMPLE_UNPROVEN, -EBADMSG, "are inconsistent", "are inconsistent"},
		{SAMPLE_UNPROVEN, -EAGAIN, "are inconsistent", "are inconsistent"},
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

/* Only the line may be late; the frames are as proven as others. */
Test(dump, reports_a_stale_line_in_jit_code)
{
	static const struct {
		uint32_t flags;
		bool is_stale;
		const char *json;
	} cases[] = {
		{0, false, "\"jit\": false"},
		{SAMPLE_GC, false, "\"jit\": false"},
		{SAMPLE_IN_JIT, true, "\"jit\": true"},
	};
	char text[MAX_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_one(cases[i].flags, 0, dump_write_text, text);
		cr_expect(eq(int,
			     strstr(text, "in JIT code: the line of the innermost Python") != NULL,
			     cases[i].is_stale),
			  "%s", text);
		write_one(cases[i].flags, 0, dump_write_json, text);
		cr_expect(ne(ptr, strstr(text, cases[i].json), NULL), "%s", text);
		cr_expect(ne(ptr, strstr(text, "\"proven\": true"), NULL), "%s", text);
	}
}

static void add_thread(struct dump *dump, pid_t tid)
{
	const struct sample_thread thread = {.tid = tid, .name = "python"};
	const struct sample sample = {.thread = &thread};

	cr_assert(zero(int, dump_sink(dump)->ops->sample(dump_sink(dump), &sample)));
}

/* Add the kernel's threads 1 to nr_threads. */
static void add_native_threads(struct dump *dump, pid_t nr_threads)
{
	dump_include_native(dump);
	for (pid_t tid = 1; tid <= nr_threads; tid++) {
		struct native_thread thread = {.tid = tid, .name = "native", .state = 'S'};

		cr_assert(zero(int, dump_add_native(dump, &thread)));
	}
}

static void write_text(const struct dump *dump,
		       int (*write)(const struct dump *, const struct run_info *, FILE *),
		       char *ret_text, size_t max_bytes)
{
	const struct run_info info = {
		.target.command_line = "python a.py", .target.pid = 7, .python.version = "3.14.1"};
	FILE *out = fmemopen(ret_text, max_bytes, "w");

	cr_assert(ne(ptr, out, NULL));
	cr_assert(zero(int, write(dump, &info, out)));
	(void)fclose(out);
}

static size_t count_of(const char *text, const char *what)
{
	size_t nr = 0;

	while ((text = strstr(text, what))) {
		nr++;
		text++;
	}
	return nr;
}

Test(dump, native_threads_are_those_unknown_to_python)
{
	/* Python does not know the ids that end in 7. The others are added in no order. */
	enum { NR_THREADS = 100, STEP = 37 };
	struct dump *dump = dump_create();
	char text[4 * MAX_TEXT_BYTES] = "";

	cr_assert(ne(ptr, dump, NULL));
	for (pid_t i = 0; i < NR_THREADS; i++) {
		pid_t tid = i * STEP % NR_THREADS + 1;

		if (tid % 10 != 7)
			add_thread(dump, tid);
	}
	add_native_threads(dump, NR_THREADS);
	write_text(dump, dump_write_text, text, sizeof(text));
	cr_expect(eq(sz, count_of(text, "\"native\": waits\n"), NR_THREADS / 10));
	for (pid_t tid = 1; tid <= NR_THREADS; tid++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "Thread %d \"%s\"", tid,
			       tid % 10 == 7 ? "native" : "python");
		cr_expect(eq(sz, count_of(text, line), 1), "%s", line);
	}
	/* A Python thread found later, as a sample. */
	add_thread(dump, NR_THREADS + 1);
	add_native_threads(dump, NR_THREADS + 1);
	write_text(dump, dump_write_text, text, sizeof(text));
	cr_expect(zero(sz, count_of(text, "101 \"native\"")));
	dump_destroy(dump);
}

/* A Python thread with an unknown id may be any thread of the kernel's. */
Test(dump, no_thread_is_listed_twice)
{
	static const struct {
		pid_t tid;
		size_t nr_native_frames;
		const char *text, *json;
	} cases[] = {
		{1, 1, "Native threads unknown to Python:\n", "\"tid\": 2,"},
		{0, 0,
		 "\nNative threads cannot be distinguished from these: the id of 1 is unknown.\n",
		 "\"native_threads\": null"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct dump *dump = dump_create();
		char text[MAX_TEXT_BYTES];

		cr_assert(ne(ptr, dump, NULL));
		add_thread(dump, cases[i].tid);
		add_native_threads(dump, 2);
		write_text(dump, dump_write_text, text, sizeof(text));
		cr_expect(ne(ptr, strstr(text, cases[i].text), NULL), "%s", text);
		cr_expect(eq(sz, count_of(text, "\"native\""), cases[i].nr_native_frames));
		write_text(dump, dump_write_json, text, sizeof(text));
		cr_expect(ne(ptr, strstr(text, cases[i].json), NULL), "%s", text);
		cr_expect(eq(sz, count_of(text, "\"native\""), cases[i].nr_native_frames));
		dump_destroy(dump);
	}
}

Test(dump, reports_the_absence_of_native_threads)
{
	for (pid_t tid = 0; tid < 2; tid++) {
		struct dump *dump = dump_create();
		char text[MAX_TEXT_BYTES];

		cr_assert(ne(ptr, dump, NULL));
		add_thread(dump, tid);
		add_native_threads(dump, tid);
		write_text(dump, dump_write_text, text, sizeof(text));
		cr_expect(ne(ptr, strstr(text, "No other native threads."), NULL), "%s", text);
		write_text(dump, dump_write_json, text, sizeof(text));
		cr_expect(ne(ptr, strstr(text, "\"native_threads\": []"), NULL), "%s", text);
		dump_destroy(dump);
	}
}

/* Write a thread as text whose frames are the named functions, all on line 1. */
static void write_frames(const char *names, const struct sample_exception *exception,
			 char ret_text[MAX_TEXT_BYTES])
{
	enum { MAX_FRAMES = 64 };
	static const struct function functions[] = {
		{.qualname = "a", .path = "x.py"},
		{.qualname = "b", .path = "x.py"},
		{.qualname = "c", .path = "x.py"},
	};
	const struct run_info info = {
		.target.command_line = "python", .target.pid = 7, .python.version = "3.14.1"};
	const struct sample_thread thread = {.tid = 7};
	struct sample sample = {.thread = &thread, .exception = exception};
	struct frame frames[MAX_FRAMES];
	struct dump *dump = dump_create();
	FILE *out = fmemopen(ret_text, MAX_TEXT_BYTES, "w");

	for (; names[sample.nr_frames]; sample.nr_frames++)
		frames[sample.nr_frames] = (struct frame){
			.function = &functions[names[sample.nr_frames] - 'a'], .line = 1};
	sample.frames = frames;
	cr_assert(zero(int, dump_sink(dump)->ops->sample(dump_sink(dump), &sample)));
	cr_assert(zero(int, dump_write_text(dump, &info, out)));
	(void)fclose(out);
	dump_destroy(dump);
}

Test(dump, repeated_frames_are_written_once)
{
	static const struct {
		const char *frames;
		const char *text; /* functions in the order of the text, and repeats */
	} cases[] = {
		{"abc", "abc"},
		{"aaa", "aaa"},
		{"aaaa", "a[previous frame repeated 3 more times]"},
		{"aaaaa", "a[previous frame repeated 4 more times]"},
		{"caaaaab", "ca[previous frame repeated 4 more times]b"},
		{"ababab", "ababab"},
		{"ababababab", "ab[previous 2 frames repeated 4 more times]"},
		{"cababababac", "cab[previous 2 frames repeated 3 more times]ac"},
		{"ababababababc", "ab[previous 2 frames repeated 5 more times]c"},
		{"aabbccabcbaabbccabcbaabbccabcbaabbccabcb",
		 "aabbccabcb[previous 10 frames repeated 3 more times]"},
		{"aaaaabbbbbc", "a[previous frame repeated 4 more times]"
				"b[previous frame repeated 4 more times]c"},
	};
	char text[MAX_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char got[256] = "";

		write_frames(cases[i].frames, NULL, text);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			char *name = strstr(line, ", in ");
			char *repeats = strchr(line, '[');

			(void)strcat(got, name ? name + 5 : repeats ? repeats : "");
		}
		cr_expect(eq(str, got, (char *)cases[i].text), "%s", cases[i].frames);
	}
}

Test(dump, exception_follows_the_frames)
{
	char text[MAX_TEXT_BYTES];

	write_frames("ab", &(struct sample_exception){"ValueError", "no\nnumber"}, text);
	cr_expect(ne(ptr, strstr(text, "in b\n  handling ValueError: no\\x0anumber\n"), NULL), "%s",
		  text);
	write_frames("ab", &(struct sample_exception){"KeyboardInterrupt", ""}, text);
	cr_expect(ne(ptr, strstr(text, "in b\n  handling KeyboardInterrupt\n"), NULL), "%s", text);
}
