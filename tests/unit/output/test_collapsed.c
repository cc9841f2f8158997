/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/collapsed.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/made_sample.h"
#include "tests/support/stack_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	struct function function;
	const char *label;
} nasty[] = {
	{{0, 1, "<module>", "app.py", FUNCTION_PYTHON}, "<module> (app.py:1)"},
	{{1, 7, "<lambda>", "app.py", FUNCTION_PYTHON}, "<lambda> (app.py:7)"},
	{{2, 8, "a;b", "c;d.py", FUNCTION_PYTHON}, "a:b (c:d.py:8)"},
	{{3, 9, "new\nline 7\n", "a\n 1", FUNCTION_PYTHON}, "new\\x0aline 7\\x0a (a\\x0a 1:9)"},
	{{4, 0, "x 5", "", FUNCTION_PYTHON}, "x 5 ()"},
	{{5, 5, "x 5", "p 6.5", FUNCTION_PYTHON}, "x 5 (p 6.5:5)"},
	{{6, 2, "\xf0\x9f\x90\x8d", "\xc3\xa9.py", FUNCTION_PYTHON},
	 "\xf0\x9f\x90\x8d (\xc3\xa9.py:2)"},
	{{7, 3, "\033]0;title\007", "\xff", FUNCTION_PYTHON}, "\\x1b]0:title\\x07 (\\xff:3)"},
	{{8, 0, "", "", FUNCTION_PYTHON}, "?"},
	{{9, 0, "f", "built-in", FUNCTION_PYTHON}, "f (built-in)"},
};
static const struct sample_thread thread = {.id = 0, .tid = 42, .name = "a b;c"};

static struct profile *new_profile(bool by_thread)
{
	const struct profile_options options = {.by_thread = by_thread};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

static char *write_text(const struct profile *profile)
{
	size_t size;

	return artefact_text(collapsed_write, &(struct artefact){.profile = profile}, &size);
}

/*
 * The runs come first, one line each. Readers do not mistake them for stacks, because they do not
 * end in a number.
 */
Test(collapsed, header_precedes_the_stacks)
{
	const struct run runs[] = {{.info = {.target.command_line = "python3 a\nb;c 7"}},
				   {.info = {.target.command_line = "python3 8"}}};
	struct profile *profile = new_profile(false);
	const struct artefact artefact = {
		.profile = profile,
		.runs = &runs[0],
		.nr_runs = 1,
		.base_runs = &runs[1],
		.nr_base_runs = 1,
		.options = {.header = true},
	};
	cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *second;

	cr_assert(ne(ptr, out, NULL));
	cr_assert(zero(int, collapsed_write(&artefact, out)));
	cr_assert(zero(int, fclose(out)));
	second = strchr(text, '\n') + 1;
	cr_expect(zero(int, strncmp(text, "# run {", 7)));
	cr_expect(ne(ptr, strstr(text, "\"command_line\":\"python3 a\\u000ab;c 7\""), NULL));
	cr_expect(eq(chr, second[-2], '}'));
	cr_expect(zero(int, strncmp(second, "# base {", 8)));
	cr_expect(ne(ptr, strstr(second, "\"command_line\":\"python3 8\""), NULL));
	cr_expect(zero(int, strcmp(text + size - 2, "}\n")));
	profile_destroy(profile);
}

Test(collapsed, writes_one_line_for_each_stack)
{
	static const struct {
		bool by_thread;
		const char *expected;
	} cases[] = {
		{false, "<module> (app.py:1);<lambda> (app.py:7) 2\n"
			"<module> (app.py:1);x 5 () 1\n"
			"[no python frames] 1\n"},
		{true, "thread a b:c (42);[no python frames] 1\n"
		       "thread a b:c (42);<module> (app.py:1);<lambda> (app.py:7) 2\n"
		       "thread a b:c (42);<module> (app.py:1);x 5 () 1\n"},
	};
	const struct frame one[] = {{&nasty[0].function, 1}, {&nasty[1].function, 1}};
	const struct frame two[] = {{&nasty[0].function, 1}, {&nasty[4].function, 1}};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = new_profile(cases[i].by_thread);
		cleanup_free char *text = NULL;

		cr_assert(eq(int, push_sample(profile, &thread, one, 2, 0, 1), 0));
		cr_assert(eq(int, push_sample(profile, &thread, two, 2, 1, 1), 0));
		cr_assert(eq(int, push_sample(profile, &thread, NULL, 0, 0, 1), 0));
		cr_assert(eq(int, push_sample(profile, &thread, one, 2, 0, 1), 0));
		text = write_text(profile);
		cr_expect(eq(str, text, (char *)cases[i].expected));
		profile_destroy(profile);
	}
}

Test(collapsed, empty_profile_writes_nothing)
{
	struct profile *profile = new_profile(false);
	cleanup_free char *text = write_text(profile);

	cr_expect(eq(str, text, (char *)""));
	profile_destroy(profile);
}

Test(collapsed, reports_a_write_error)
{
	const struct frame frame = {&nasty[0].function, 1};
	struct profile *profile = new_profile(false);
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		cr_skip("no /dev/full");
	cr_assert(eq(int, push_sample(profile, &thread, &frame, 1, 0, 1), 0));
	cr_expect(eq(int, collapsed_write(&(struct artefact){.profile = profile}, out), -ENOSPC));
	(void)setvbuf(out, NULL, _IONBF, 0);
	cr_expect(eq(int, collapsed_write(&(struct artefact){.profile = profile}, out), -ENOSPC));
	(void)fclose(out);
	profile_destroy(profile);
}

/* Random stacks with nasty names, compared with the text that was written. */
#define NR_SAMPLES 2000
#define MAX_DEPTH  5

struct stack {
	uint32_t index[MAX_DEPTH];
	uint32_t nr;
};

static void stack_random(struct stack *stack, struct frame *frames, uint32_t *random)
{
	*random = *random * 1664525u + 1013904223u;
	stack->nr = (*random >> 16) % (MAX_DEPTH + 1);
	for (uint32_t i = 0; i < stack->nr; i++) {
		*random = *random * 1664525u + 1013904223u;
		stack->index[i] = (*random >> 16) % NR(nasty);
		frames[i] = (struct frame){&nasty[stack->index[i]].function, 0};
	}
}

/* Parse "a;b 5". Returns false if the line has another form. */
static bool line_parse(char *line, struct stack *stack, unsigned long *ret_count)
{
	char *count = strrchr(line, ' ');
	char *end;

	if (!count)
		return false;
	*count++ = '\0';
	*ret_count = strtoul(count, &end, 10);
	stack->nr = 0;
	if (*end || end == count)
		return false;
	if (strcmp(line, "[no python frames]") == 0)
		return true;
	for (char *label = strtok(line, ";"); label; label = strtok(NULL, ";")) {
		uint32_t i = 0;

		while (i < NR(nasty) && strcmp(nasty[i].label, label) != 0)
			i++;
		if (i == NR(nasty) || stack->nr == MAX_DEPTH)
			return false;
		stack->index[stack->nr++] = i;
	}
	return true;
}

static bool stack_equal(const struct stack *a, const struct stack *b)
{
	return a->nr == b->nr && memcmp(a->index, b->index, a->nr * sizeof(a->index[0])) == 0;
}

Test(collapsed, lines_parse_back_to_the_stacks)
{
	static struct stack stacks[NR_SAMPLES];
	struct profile *profile = new_profile(false);
	cleanup_free char *text = NULL;
	unsigned long all = 0;
	uint32_t random = 1;
	regex_t second_count;
	char *next;

	/* flamegraph.pl's pattern for a second count after the frames. */
	cr_assert(
		eq(int, regcomp(&second_count, "[[:space:]][0-9]+(\\.[0-9]*)?$", REG_EXTENDED), 0));
	for (size_t i = 0; i < NR_SAMPLES; i++) {
		struct frame frames[MAX_DEPTH];

		stack_random(&stacks[i], frames, &random);
		cr_assert(eq(int, push_sample(profile, &thread, frames, stacks[i].nr, 0, 1), 0));
	}
	text = write_text(profile);
	for (char *line = text; *line; line = next) {
		unsigned long expected = 0;
		unsigned long count;
		struct stack stack;

		next = strchr(line, '\n');
		cr_assert(next != NULL);
		*next++ = '\0';
		cr_assert(line_parse(line, &stack, &count), "%s", line);
		cr_expect(regexec(&second_count, line, 0, NULL, 0) == REG_NOMATCH, "%s", line);
		for (size_t i = 0; i < NR_SAMPLES; i++)
			expected += stack_equal(&stack, &stacks[i]);
		cr_expect(eq(ulong, count, expected), "%s", line);
		all += count;
	}
	cr_expect(eq(ulong, all, NR_SAMPLES));
	regfree(&second_count);
	profile_destroy(profile);
}

/*
 * Counts are microseconds, rounded. Stacks below half a microsecond and idle threads are left
 * out.
 */
Test(collapsed, weighs_by_cpu_time)
{
	static const struct frame frames[] = {{&nasty[0].function, 1}, {&nasty[1].function, 1}};
	static const struct {
		uint32_t nr_frames;
		uint64_t cpu_ns;
	} samples[] = {{2, 1000000}, {2, 1499}, {1, 499}, {0, 2500}, {0, 0}};
	const struct profile_options options = {.mode = PROFILE_CPU};
	struct profile *profile = profile_create(&options);
	struct sample_sink *sink = profile_sink(profile);
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < NR(samples); i++) {
		const struct sample sample = {
			.wall_ns = 1000000,
			.cpu_ns = samples[i].cpu_ns,
			.thread = &thread,
			.frames = frames,
			.nr_frames = samples[i].nr_frames,
			.flags = samples[i].cpu_ns ? SAMPLE_ON_CPU : 0,
		};

		cr_assert(zero(int, sink->ops->sample(sink, &sample)));
	}
	text = write_text(profile);
	cr_expect(eq(str, text,
		     (char *)"<module> (app.py:1);<lambda> (app.py:7) 1001\n"
			     "[no python frames] 3\n"));
	profile_destroy(profile);
}

/*
 * Microseconds of the shown side, which has 6 and the base 15. The base's number comes first; a
 * stack that one side lacks is 0 there, and one that it has is not.
 */
Test(collapsed, writes_both_counts_of_a_comparison)
{
	static const enum profile_mode modes[] = {PROFILE_WALL, PROFILE_CPU};
	static const char expected[] =
		"a (app.py:10) 2 1\na (app.py:10);b (app.py:20) 0 2\nc (app.py:30) 2 0\n"
		"d (app.py:40) 1 1\n[no python frames] 2 3\n";
	static const struct {
		enum profile_side side;
		const char *stack;
		uint64_t us;
	} samples[] = {
		{PROFILE_SHOWN, "a", 1}, {PROFILE_SHOWN, "a;b", 2}, {PROFILE_SHOWN, "", 1},
		{PROFILE_SHOWN, "", 2},	 {PROFILE_BASE, "a", 3},    {PROFILE_BASE, "a", 1},
		{PROFILE_BASE, "c", 5},	 {PROFILE_BASE, "", 6},	    {PROFILE_SHOWN, "d", 0},
		{PROFILE_BASE, "d", 0},
	};

	for (size_t i = 0; i < NR(modes); i++) {
		const struct profile_options options = {.mode = modes[i]};
		struct artefact artefact = {.has_base = true};
		struct profile *profile = profile_create(&options);
		cleanup_free char *text = NULL;
		size_t size;

		cr_assert(profile != NULL);
		for (size_t k = 0; k < NR(samples); k++)
			add_stack(profile, samples[k].side, samples[k].stack, samples[k].us * 1000);
		artefact.profile = profile;
		text = artefact_text(collapsed_write, &artefact, &size);
		cr_expect(eq(str, text, (char *)expected));
		profile_destroy(profile);
	}
}
