/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/formats/pprof.h"
#include "output/profile.pb-c.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/gunzip.h"
#include "tests/support/timed_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

typedef Perftools__Profiles__Profile Message;

/* Write a profile and read the message back; free it with protobuf-c. */
static Message *write_message(const struct artefact *artefact)
{
	size_t size;
	cleanup_free char *file = artefact_text(pprof_write, artefact, &size);
	cleanup_free char *bytes = NULL;
	Message *message;

	bytes = gunzip(file, size, &size);
	message = perftools__profiles__profile__unpack(NULL, size, (uint8_t *)bytes);
	cr_assert(message != NULL);
	return message;
}

static const char *string_at(const Message *message, int64_t index)
{
	cr_assert(index >= 0 && (size_t)index < message->n_string_table);
	return message->string_table[index];
}

static const Perftools__Profiles__Location *find_location(const Message *message, uint64_t id)
{
	for (size_t i = 0; i < message->n_location; i++)
		if (message->location[i]->id == id)
			return message->location[i];
	cr_assert(false, "no location %ju", (uintmax_t)id);
	return NULL;
}

static const Perftools__Profiles__Function *find_function(const Message *message, uint64_t id)
{
	for (size_t i = 0; i < message->n_function; i++)
		if (message->function[i]->id == id)
			return message->function[i];
	cr_assert(false, "no function %ju", (uintmax_t)id);
	return NULL;
}

/*
 * Format each sample as a line like "memcpy:0<<module>:3 2 2000000 thread=MainThread
 * thread_id=4242 pid=4242".
 */
static char *format_samples(const Message *message)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < message->n_sample; i++) {
		const Perftools__Profiles__Sample *sample = message->sample[i];

		for (size_t k = 0; k < sample->n_location_id; k++) {
			const Perftools__Profiles__Location *location =
				find_location(message, sample->location_id[k]);

			cr_assert(eq(sz, location->n_line, 1));
			fprintf(out, "%s%s:%jd", k ? "<" : "",
				string_at(message,
					  find_function(message, location->line[0]->function_id)
						  ->name),
				(intmax_t)location->line[0]->line);
		}
		cr_assert(eq(sz, sample->n_value, message->n_sample_type));
		for (size_t k = 0; k < sample->n_value; k++)
			fprintf(out, " %jd", (intmax_t)sample->value[k]);
		for (size_t k = 0; k < sample->n_label; k++) {
			const Perftools__Profiles__Label *label = sample->label[k];

			fprintf(out, " %s=", string_at(message, label->key));
			if (label->str)
				fprintf(out, "%s", string_at(message, label->str));
			else
				fprintf(out, "%jd", (intmax_t)label->num);
		}
		fprintf(out, "\n");
	}
	cr_assert(eq(int, fclose(out), 0));
	return text;
}

static const struct timed_sample samples[] = {
	{TIMED_MAIN, 1000, 1000, 900, SAMPLE_ON_CPU, 2, {{TIMED_MODULE, 3}, {TIMED_FIB, 11}}},
	{TIMED_MAIN, 2000, 1000, 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_FIB, 11}}},
	{TIMED_MAIN,
	 3000,
	 1000,
	 70,
	 SAMPLE_ON_CPU,
	 3,
	 {{TIMED_MODULE, 3}, {TIMED_FIB, 12}, {TIMED_FIB, 11}}},
	{TIMED_WORKER, 3000, 500, 5, SAMPLE_ON_CPU, 2, {{TIMED_MODULE, 3}, {TIMED_MEMCPY, 0}}},
	{TIMED_WORKER, 3500, 500, 1, SAMPLE_ON_CPU, 0, {{0}}},
	{TIMED_MAIN, 3500, 500, 0, 0, 0, {{0}}},
	{TIMED_MAIN, 3600, 100, 0, 0, 1, {{TIMED_EMPTY, 8}}},
	{TIMED_MAIN, 3700, 100, 0, SAMPLE_IN_JIT, 1, {{TIMED_EMPTY, 8}}},
	{TIMED_MAIN, 3800, 100, 0, SAMPLE_IN_JIT, 1, {{TIMED_EMPTY, 8}}},
	{TIMED_WORKER, 3800, 9, 0, SAMPLE_IN_JIT, 0, {{0}}},
};

#define WORKER " thread=worker \"1\"\\x0a thread_id=4250 pid=4242\n"
#define MAIN   " thread=MainThread thread_id=4242 pid=4242\n"
#define IDLE   "[no python frames]:0"
#define IN_JIT " jit=true\n"
#define LINES                                                                                      \
	"Math.fib:11<<module>:3 2 2000" MAIN "Math.fib:11<Math.fib:12<<module>:3 1 1000" MAIN IDLE \
	" 1 500" MAIN "?:8 1 100" MAIN                                                             \
	"?:8 2 200 thread=MainThread thread_id=4242 pid=4242" IN_JIT                               \
	"memcpy:0<<module>:3 1 500" WORKER IDLE " 1 500" WORKER IDLE                               \
	" 1 9 thread=worker \"1\"\\x0a thread_id=4250 pid=4242" IN_JIT

Test(pprof, writes_a_sample_for_each_stack_of_each_thread)
{
	static const struct {
		struct profile_options options;
		const char *type;
		const char *expected;
	} cases[] = {
		{{.by_line = true, .keep_samples = true}, "wall", LINES},
		/* The roots of threads are not written. */
		{{.by_line = true, .keep_samples = true, .by_thread = true}, "wall", LINES},
		{{.mode = PROFILE_CPU, .keep_samples = true},
		 "cpu",
		 "Math.fib:10<<module>:1 1 900" MAIN "Math.fib:10<Math.fib:10<<module>:1 1 70" MAIN
		 "memcpy:0<<module>:1 1 5" WORKER IDLE " 1 1" WORKER},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = timed_profile(&cases[i].options, samples, NR(samples));
		Message *message = write_message(&(struct artefact){.profile = profile});
		cleanup_free char *text = format_samples(message);

		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
		cr_assert(eq(sz, message->n_sample_type, 2));
		cr_expect(eq(str, (char *)string_at(message, message->sample_type[0]->type),
			     (char *)"samples"));
		cr_expect(eq(str, (char *)string_at(message, message->sample_type[0]->unit),
			     (char *)"count"));
		cr_expect(eq(str, (char *)string_at(message, message->sample_type[1]->type),
			     (char *)cases[i].type));
		cr_expect(eq(str, (char *)string_at(message, message->sample_type[1]->unit),
			     (char *)"nanoseconds"));
		cr_expect(eq(i64, message->default_sample_type, message->sample_type[1]->type));
		perftools__profiles__profile__free_unpacked(message, NULL);
		profile_destroy(profile);
	}
}

/*
 * No system_name, because pprof would demangle it as C++. Names have no control characters,
 * because pprof prints them raw.
 */
Test(pprof, names_are_safe_to_print)
{
	static const struct timed_sample row = {
		TIMED_MAIN, 1000, 1000, 0, 0, 2, {{TIMED_MODULE, 3}, {TIMED_NASTY, 0}}};
	static const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = timed_profile(&options, &row, 1);
	Message *message = write_message(&(struct artefact){.profile = profile});
	bool found = false;

	cr_expect(eq(str, message->string_table[0], (char *)""));
	for (size_t i = 0; i < message->n_function; i++) {
		const Perftools__Profiles__Function *function = message->function[i];
		const char *name = string_at(message, function->name);

		cr_expect(eq(i64, function->system_name, 0));
		if (strcmp(name, "Math.fib") == 0) {
			cr_expect(eq(i64, function->start_line, 10));
			cr_expect(eq(str, (char *)string_at(message, function->filename),
				     (char *)"lib/math.py"));
		}
		found |= strcmp(name, "</script>;\"\\ \\x0a\\x1b[2J\\xff\xf0\x9f\x90\x8d") == 0;
	}
	cr_expect(found);
	perftools__profiles__profile__free_unpacked(message, NULL);
	profile_destroy(profile);
}

Test(pprof, each_file_has_a_mapping)
{
	static const struct run run = {.info = {.target.command_line = "/usr/bin/python3 app.py"}};
	static const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	const struct artefact artefact = {.profile = profile, .runs = &run, .nr_runs = 1};
	Message *message = write_message(&artefact);
	static const char *const paths[] = {"/usr/bin/python3", "/lib/libc.so.6"};

	cr_assert(eq(sz, message->n_mapping, NR(paths)));
	for (size_t i = 0; i < NR(paths); i++) {
		cr_expect(eq(u64, message->mapping[i]->id, i + 1));
		cr_expect(message->mapping[i]->has_functions);
		cr_expect(eq(str, (char *)string_at(message, message->mapping[i]->filename),
			     (char *)paths[i]));
	}
	for (size_t i = 0; i < message->n_location; i++) {
		const Perftools__Profiles__Location *location = message->location[i];
		const Perftools__Profiles__Function *function =
			find_function(message, location->line[0]->function_id);
		bool is_native = strcmp(string_at(message, function->name), "memcpy") == 0;

		cr_expect(eq(u64, location->mapping_id, is_native ? 2 : 1));
	}
	perftools__profiles__profile__free_unpacked(message, NULL);
	profile_destroy(profile);
}

static bool has_comment(const Message *message, const char *comment)
{
	for (size_t i = 0; i < message->n_comment; i++)
		if (strcmp(string_at(message, message->comment[i]), comment) == 0)
			return true;
	return false;
}

Test(pprof, metadata_describes_the_runs)
{
	static const struct run runs[] = {
		{.info = {.requested_hz = 1000,
			  .start_unix_ns = 5000000000,
			  .target.command_line = "a\nb"},
		 .stats = {.start_ns = 100, .end_ns = 1000000100}},
		{.info = {.requested_hz = 100,
			  .start_unix_ns = 4000000000,
			  .target.command_line = "c"},
		 .stats = {.start_ns = 100, .end_ns = 500000100}},
	};
	static const struct {
		uint32_t first, nr;
		int64_t time_ns, duration_ns, period_ns;
		const char *comments[2];
	} cases[] = {
		{0, 1, 5000000000, 1000000000, 1000000, {"command_line: a\\x0ab"}},
		{0,
		 2,
		 4000000000,
		 2000000000,
		 1000000,
		 {"run 1 command_line: a\\x0ab", "run 2 command_line: c"}},
		{1, 1, 4000000000, 500000000, 10000000, {"command_line: c"}},
	};
	static const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = timed_profile(&options, samples, NR(samples));

	for (size_t i = 0; i < NR(cases); i++) {
		const struct artefact artefact = {
			.profile = profile, .runs = runs + cases[i].first, .nr_runs = cases[i].nr};
		Message *message = write_message(&artefact);

		cr_expect(eq(i64, message->time_nanos, cases[i].time_ns));
		cr_expect(eq(i64, message->duration_nanos, cases[i].duration_ns));
		cr_expect(eq(i64, message->period, cases[i].period_ns));
		cr_expect(eq(str, (char *)string_at(message, message->period_type->type),
			     (char *)"wall"));
		for (size_t k = 0; k < 2 && cases[i].comments[k]; k++)
			cr_expect(has_comment(message, cases[i].comments[k]), "case %zu", i);
		perftools__profiles__profile__free_unpacked(message, NULL);
	}
	profile_destroy(profile);
}

Test(pprof, empty_profile_is_valid)
{
	static const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = profile_create(&options);
	Message *message = write_message(&(struct artefact){.profile = profile});

	cr_expect(eq(sz, message->n_sample, 0));
	perftools__profiles__profile__free_unpacked(message, NULL);
	profile_destroy(profile);
}

Test(pprof, reports_a_write_error)
{
	static const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = timed_profile(&options, samples, NR(samples));
	const struct artefact artefact = {.profile = profile};
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_expect(eq(int, pprof_write(&artefact, out), -ENOSPC));
	(void)setvbuf(out, NULL, _IONBF, 0);
	cr_expect(eq(int, pprof_write(&artefact, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy(profile);
}
