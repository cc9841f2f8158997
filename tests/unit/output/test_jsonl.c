/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/jsonl.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/processes.h"
#include "tests/support/stack_profile.h"

static const struct run run = {
	.info = {.target.command_line = "python3 \"a\nb.py", .target.pid = 42}};

static struct profile *new_profile(bool by_thread)
{
	const struct profile_options options = {
		.by_line = true,
		.by_thread = by_thread,
		.keep_samples = true,
	};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

static char *write_text(const struct profile *profile, uint32_t nr_runs)
{
	const struct run runs[] = {run, run};
	const struct artefact artefact = {.profile = profile, .runs = runs, .nr_runs = nr_runs};
	size_t size;

	return artefact_text(jsonl_write, &artefact, &size);
}

/* The text after the runs. */
static const char *body(const char *text)
{
	while (strncmp(text, "{\"type\":\"run\"", 13) == 0)
		text = strchr(text, '\n') + 1;
	return text;
}

Test(jsonl, runs_come_first)
{
	struct profile *profile = new_profile(false);
	cleanup_free char *text = write_text(profile, 2);
	const char *second = strchr(text, '\n') + 1;

	cr_expect(strstr(text, "{\"type\":\"run\",\"id\":0,\"run\":{\"") == text, "%s", text);
	cr_expect(strstr(text, "\"command_line\":\"python3 \\\"a\\u000ab.py\"") != NULL, "%s",
		  text);
	cr_expect(strstr(second, "{\"type\":\"run\",\"id\":1,\"run\":{\"") == second, "%s", text);
	cr_expect(eq(str, (char *)body(text), (char *)""));
	profile_destroy(profile);
}

static void add_sample(struct profile *profile, struct profile_sample sample, const char *stack)
{
	char *copy = strdup(stack);

	cr_assert(copy != NULL);
	sample.node = stack_node(profile, copy);
	cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	free(copy);
}

Test(jsonl, writes_threads_stacks_and_samples)
{
	const struct profile_thread main_thread = {.tid = 7, .name = "a\"b", .is_main = true};
	const struct profile_thread other = {
		.process = PROFILE_NONE,
		.tid = 8,
		.interpreter_id = 2,
	};
	struct profile *profile = new_profile(false);
	cleanup_free char *text = NULL;
	uint32_t thread;

	cr_assert(eq(int, profile_add_thread(profile, &other, &thread), 0));
	cr_assert(eq(int, add_process(profile, 42, "x y"), 0));
	cr_assert(eq(int, profile_add_thread(profile, &main_thread, &thread), 0));
	add_sample(profile,
		   (struct profile_sample){.time_ns = 1700000000000001000,
					   .wall_ns = 1000,
					   .thread = thread,
					   .flags = SAMPLE_HOLDS_GIL | SAMPLE_GC},
		   "a@11;b@0");
	add_sample(profile,
		   (struct profile_sample){.time_ns = 2000,
					   .wall_ns = 1000,
					   .cpu_ns = 7,
					   .thread = PROFILE_NONE,
					   .flags = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU |
						    SAMPLE_EXCEPTION | SAMPLE_WAITS_FOR_GIL |
						    SAMPLE_IN_JIT | SAMPLE_APPROXIMATE |
						    SAMPLE_IDLE},
		   "");
	add_sample(profile, (struct profile_sample){.wall_ns = 1, .flags = SAMPLE_CPU_MEASURED},
		   "a@11;b@0");
	text = write_text(profile, 1);
	cr_expect(
		eq(str, (char *)body(text),
		   (char *)"{\"type\":\"process\",\"id\":0,\"pid\":42,\"command_line\":\"x y\","
			   "\"name\":\"\",\"parent_pid\":null,\"start_ns\":null,\"end_ns\":null}\n"
			   "{\"type\":\"thread\",\"id\":0,\"process\":null,\"tid\":8,\"name\":\"\","
			   "\"interpreter\":2,\"main\":false}\n"
			   "{\"type\":\"thread\",\"id\":1,\"process\":0,\"tid\":7,"
			   "\"name\":\"a\\\"b\",\"interpreter\":0,\"main\":true}\n"
			   "{\"type\":\"stack\",\"id\":0,\"frames\":["
			   "{\"name\":\"a\",\"kind\":\"python\",\"path\":\"app.py\","
			   "\"first_line\":10,\"line\":11},"
			   "{\"name\":\"b\",\"kind\":\"python\",\"path\":\"app.py\","
			   "\"first_line\":20,\"line\":null}]}\n"
			   "{\"type\":\"sample\",\"time_ns\":1700000000000001000,\"thread\":1,"
			   "\"stack\":0,\"wall_ns\":1000,\"cpu_ns\":null,\"on_cpu\":null,"
			   "\"gil\":true,\"waits_for_gil\":false,\"gc\":true,"
			   "\"exception\":false,\"jit\":false,\"idle\":false,"
			   "\"approximate\":false}\n"
			   "{\"type\":\"stack\",\"id\":1,\"frames\":[]}\n"
			   "{\"type\":\"sample\",\"time_ns\":2000,\"thread\":null,"
			   "\"stack\":1,\"wall_ns\":1000,\"cpu_ns\":7,\"on_cpu\":true,"
			   "\"gil\":false,\"waits_for_gil\":true,\"gc\":false,"
			   "\"exception\":true,\"jit\":true,\"idle\":true,"
			   "\"approximate\":true}\n"
			   "{\"type\":\"sample\",\"time_ns\":0,\"thread\":0,"
			   "\"stack\":0,\"wall_ns\":1,\"cpu_ns\":0,\"on_cpu\":false,"
			   "\"gil\":false,\"waits_for_gil\":false,\"gc\":false,"
			   "\"exception\":false,\"jit\":false,\"idle\":false,"
			   "\"approximate\":false}\n"));
	profile_destroy(profile);
}

/* A thread's root is not written as a frame. */
Test(jsonl, thread_roots_are_no_frames)
{
	const struct profile_thread thread = {.tid = 7};
	const struct function gc = {0, 0, SAMPLE_GC_NAME, "", FUNCTION_COLLECTOR};
	struct profile *profile = new_profile(true);
	struct profile_sample sample = {0};
	cleanup_free char *text = NULL;
	uint32_t function;

	cr_assert(eq(int, profile_add_thread(profile, &thread, &sample.thread), 0));
	cr_assert(eq(int, profile_root(profile, PROFILE_NONE, sample.thread, &sample.node), 0));
	cr_assert(eq(int, profile_get_function(profile, &gc, &function), 0));
	cr_assert(eq(int, profile_get_node(profile, sample.node, function, 0, &sample.node), 0));
	cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &sample), 0));
	text = write_text(profile, 1);
	cr_expect(strstr(text,
			 "\"frames\":[{\"name\":\"<GC>\",\"kind\":\"collector\",\"path\":\"\","
			 "\"first_line\":null,\"line\":null}]}\n") != NULL,
		  "%s", text);
	profile_destroy(profile);
}

Test(jsonl, reports_a_write_error)
{
	const struct artefact artefact = {
		.profile = new_profile(false),
		.runs = &run,
		.nr_runs = 1,
	};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, jsonl_write(&artefact, out), -ENOSPC));
	(void)setvbuf(out, NULL, _IONBF, 0);
	cr_expect(eq(int, jsonl_write(&artefact, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy((struct profile *)artefact.profile);
}
