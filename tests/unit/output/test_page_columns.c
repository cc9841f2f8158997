/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/page/page_columns.h"
#include "procmem/cleanup.h"
#include "tests/support/page_bytes.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_NUMBERS = 16 };

static const struct function functions[] = {
	{0, 10, "main", "/srv/app.py", FUNCTION_PYTHON},
	{1, 5, "leaf", "/usr/lib/python3.12/os.py", FUNCTION_PYTHON},
	{2, 0, "<GC>", "", FUNCTION_COLLECTOR},
};

enum { RUNNING = SAMPLE_CPU_MEASURED | SAMPLE_HOLDS_GIL | SAMPLE_ON_CPU };

/* Samples of a comparison, from two merged recordings; the earlier one comes last. */
static const struct profile_sample samples[] = {
	/* time_ns, wall_ns, cpu_ns, weight, node, thread, flags */
	{5000400, 1000500, 700, 0, 1, 1, SAMPLE_CPU_MEASURED},
	{5000400, 1000000, 0, 0, PROFILE_NONE, 0, 0},
	{6000000, 1000500, 700, 0, 2, 1, RUNNING},
	{6000000, 1000000, 0, 0, 1, PROFILE_NONE, 0},
	{2000000, 300000, 0, 0, 1, 1, SAMPLE_ON_CPU},
	{3000000, 1000000, 0, 0, 3, 1, SAMPLE_GC},
};

static const struct profile_sample base[] = {
	{1, 1500, 0, 0, 1, PROFILE_NONE, 0},
	{1, 1500, 0, 0, 1, PROFILE_NONE, 0},
	{1, 2500, 0, 0, 3, PROFILE_NONE, 0},
};

/* Nodes: main:11 › leaf:7, main:11 › leaf:9 › <GC> › leaf:9, and the roots of two threads. */
enum { ROOT = 5 };

static struct profile *make_profile(enum profile_mode mode, bool by_thread)
{
	const struct profile_options options = {
		.mode = mode, .by_line = true, .by_thread = by_thread, .keep_samples = true};
	struct profile *profile = profile_create(&options);
	uint32_t row[NR(functions)];
	uint32_t node;
	uint32_t thread;

	cr_assert(profile != NULL);
	for (size_t i = 0; i < NR(functions); i++)
		cr_assert(eq(int, profile_get_function(profile, &functions[i], &row[i]), 0));
	for (pid_t tid = 7; tid < 9; tid++)
		cr_assert(eq(int,
			     profile_add_thread(profile,
						&(struct profile_thread){.tid = tid, .name = "t"},
						&thread),
			     0));
	cr_assert(eq(int, profile_get_node(profile, PROFILE_NONE, row[0], 11, &node), 0));
	cr_assert(eq(int, profile_get_node(profile, 0, row[1], 7, &node), 0));
	cr_assert(eq(int, profile_get_node(profile, 0, row[1], 9, &node), 0));
	cr_assert(eq(int, profile_get_node(profile, 2, row[2], 0, &node), 0));
	cr_assert(eq(int, profile_get_node(profile, 3, row[1], 9, &node), 0));
	if (by_thread) {
		cr_assert(eq(int, profile_root(profile, PROFILE_NONE, 1, &node), 0));
		cr_assert(eq(u32, node, ROOT));
	}
	for (size_t i = 0; i < NR(samples); i++)
		cr_assert(eq(int, profile_add(profile, PROFILE_SHOWN, &samples[i]), 0));
	for (size_t i = 0; i < NR(base); i++)
		cr_assert(eq(int, profile_add(profile, PROFILE_BASE, &base[i]), 0));
	return profile;
}

static const struct page_column *find_column(const struct page_index *index, bool has_base,
					     const char *name)
{
	const struct page_column *columns[PAGE_MAX_COLUMNS];
	uint32_t nr;

	page_columns_choose(index, has_base, columns, &nr);
	for (uint32_t i = 0; i < nr; i++)
		if (strcmp(columns[i]->name, name) == 0)
			return columns[i];
	return NULL;
}

/* Read the numbers of a column back. */
static uint32_t read_column(const struct page_index *index, const char *name,
			    int64_t numbers[MAX_NUMBERS])
{
	const struct page_column *column = find_column(index, true, name);
	struct page_numbers size;
	cleanup_free char *bytes = NULL;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);
	const unsigned char *next;

	cr_assert(column != NULL, "%s", name);
	size = page_column_measure(column, index);
	page_column_write(column, index, size.unit, out);
	cr_assert(eq(int, fclose(out), 0));
	cr_assert(eq(u64, size.bytes, length));
	cr_assert(size.nr <= MAX_NUMBERS);
	next = (const unsigned char *)bytes;
	for (uint64_t i = 0; i < size.nr; i++) {
		int64_t number =
			column->is_signed ? page_signed(&next) : (int64_t)page_unsigned(&next);

		numbers[i] = number * (int64_t)size.unit;
	}
	cr_expect(eq(ptr, (void *)next, (void *)(bytes + length)));
	return (uint32_t)size.nr;
}

struct expected {
	const char *name;
	uint32_t nr;
	int64_t numbers[MAX_NUMBERS];
};

static void expect_columns(const struct page_index *index, const struct expected *expected,
			   size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		int64_t numbers[MAX_NUMBERS];
		uint32_t nr_numbers = read_column(index, expected[i].name, numbers);

		cr_expect(eq(u32, nr_numbers, expected[i].nr), "%s", expected[i].name);
		for (uint32_t k = 0; k < nr_numbers && k < expected[i].nr; k++)
			cr_expect(eq(i64, numbers[k], expected[i].numbers[k]), "%s[%u]",
				  expected[i].name, (unsigned)k);
	}
}

/*
 * The strings are main, /srv/app.py, leaf, …os.py, <GC>, "". Time 0 is that of the earliest
 * sample.
 */
Test(page_columns, encode_the_profile)
{
	static const struct expected expected[] = {
		{"function.name", 3, {0, 2, 4}},
		{"function.path", 3, {1, 3, 5}},
		{"function.line", 3, {10, -5, -5}},
		{"function.kind", 3, {0, 0, 1}},
		{"function.origin", 3, {0, 2, 5}},
		{"frame.function", 4, {0, 1, 1, 2}},
		{"frame.line", 4, {1, 2, 4, 0}},
		{"node.parent", 5, {0, 1, 2, 1, 1}},
		{"node.frame", 5, {0, 0, 0, 0, 2}},
		{"stack.node", 4, {2, 0, 3, 4}},
		{"tick.time", 4, {0, 1000, 2000, 1000}},
		{"thread.count", 3, {1, 4, 1}},
		{"sample.tick", 6, {2, 0, 1, 1, 1, 3}},
		{"sample.stack", 6, {1, 0, 3, 0, 2, 0}},
		{"sample.flags",
		 6,
		 {0, SAMPLE_ON_CPU, SAMPLE_GC, SAMPLE_CPU_MEASURED | 0x80, RUNNING, 0}},
		/* The half microseconds of the fourth and fifth sample are one in the fourth. */
		{"sample.weight", 6, {1000, 300, 0, -999, 0, 1000}},
		/* The fifth sample ran all the time; its number is the difference to the weight. */
		{"sample.cpu", 3, {0, 1, -1000}},
		{"base.node", 2, {1, 2}},
		{"base.weight", 2, {3, 3}},
		{"base.samples", 2, {2, 1}},
	};
	struct profile *profile = make_profile(PROFILE_WALL, false);
	const struct artefact artefact = {.profile = profile, .has_base = true};
	struct page_index index;

	cr_assert(eq(int, page_index_init(&index, &artefact), 0));
	cr_expect(eq(u64, index.start_us, 2000));
	expect_columns(&index, expected, NR(expected));
	page_index_done(&index);
	profile_destroy(profile);
}

/* The unit is the greatest common divisor, without regard to signs. For zeros alone it is 1. */
Test(page_columns, use_the_greatest_common_unit)
{
	static const struct {
		const char *name;
		uint64_t unit, bytes;
	} cases[] = {{"tick.time", 1000, 4},  {"base.weight", 3, 2}, {"sample.cpu", 1, 4},
		     {"function.line", 5, 3}, {"frame.line", 1, 4},  {"sample.flags", 1, 7}};
	struct profile *profile = make_profile(PROFILE_WALL, false);
	const struct artefact artefact = {.profile = profile};
	struct page_index index;

	cr_assert(eq(int, page_index_init(&index, &artefact), 0));
	for (size_t i = 0; i < NR(cases); i++) {
		const struct page_numbers size =
			page_column_measure(find_column(&index, true, cases[i].name), &index);

		cr_expect(eq(u64, size.unit, cases[i].unit), "%s", cases[i].name);
		cr_expect(eq(u64, size.bytes, cases[i].bytes), "%s", cases[i].name);
	}
	page_index_done(&index);
	profile_destroy(profile);
}

/* The root of a thread is a function after all others. Stacks without frames end in it. */
Test(page_columns, include_thread_roots_as_functions)
{
	static const struct expected expected[] = {
		{"function.name", 4, {0, 2, 4, 6}},
		{"function.path", 4, {1, 3, 5, 5}},
		{"function.line", 4, {10, -5, -5, 0}},
		{"function.origin", 4, {0, 2, 5, 8}},
		{"frame.function", 5, {0, 1, 1, 2, 3}},
		{"frame.line", 5, {1, 2, 4, 0, 0}},
		{"base.node", 3, {1, 2, 2}},
		{"base.weight", 3, {3, 3, 9}},
		{"base.samples", 3, {2, 1, 1}},
	};
	static const struct profile_sample idle = {1, 9000, 0, 0, ROOT, 1, 0};
	struct profile *profile = make_profile(PROFILE_WALL, true);
	const struct artefact artefact = {.profile = profile, .has_base = true};
	struct page_index index;

	cr_assert(eq(int, profile_add(profile, PROFILE_BASE, &idle), 0));
	cr_assert(eq(int, page_index_init(&index, &artefact), 0));
	cr_expect(eq(str, (char *)index.strings.strings[6], (char *)"thread t (8)"));
	expect_columns(&index, expected, NR(expected));
	page_index_done(&index);
	profile_destroy(profile);
}

Test(page_columns, start_with_the_run)
{
	struct profile *profile = make_profile(PROFILE_WALL, false);
	static const struct {
		uint64_t start_unix_ns, start_us;
	} cases[] = {{1500000, 1500}, {2500000, 2000}, {0, 2000}};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct run run = {.info = {.start_unix_ns = cases[i].start_unix_ns}};
		const struct artefact artefact = {.profile = profile, .runs = &run, .nr_runs = 1};
		struct page_index index;

		cr_assert(eq(int, page_index_init(&index, &artefact), 0));
		cr_expect(eq(u64, index.start_us, cases[i].start_us));
		page_index_done(&index);
	}
	profile_destroy(profile);
}

/* In a profile of CPU time the weights are the CPU times, so there is no column for them. */
Test(page_columns, are_omitted_if_redundant)
{
	static const struct {
		enum profile_mode mode;
		bool has_base, has_cpu;
	} cases[] = {{PROFILE_WALL, false, true},
		     {PROFILE_WALL, true, true},
		     {PROFILE_CPU, true, false}};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = make_profile(cases[i].mode, false);
		const struct artefact artefact = {.profile = profile};
		struct page_index index;
		bool has_base;
		bool has_cpu;

		cr_assert(eq(int, page_index_init(&index, &artefact), 0));
		has_base = find_column(&index, cases[i].has_base, "base.node") != NULL;
		has_cpu = find_column(&index, cases[i].has_base, "sample.cpu") != NULL;
		cr_expect(eq(int, has_base, cases[i].has_base));
		cr_expect(eq(int, has_cpu, cases[i].has_cpu));
		page_index_done(&index);
		profile_destroy(profile);
	}
}

Test(page_columns, find_a_tick_from_any_hint)
{
	uint64_t ticks_us[1000];
	const struct page_index index = {.ticks_us = ticks_us, .nr_ticks = NR(ticks_us)};

	for (uint32_t i = 0; i < NR(ticks_us); i++)
		ticks_us[i] = i * (uint64_t)i;
	for (uint32_t i = 0; i < NR(ticks_us); i++)
		for (uint32_t hint = 0; hint < NR(ticks_us); hint += 111)
			cr_assert(eq(u32, page_index_tick(&index, ticks_us[i], hint), i));
}
