/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/profile/thread_samples.h"
#include "tests/support/timed_profile.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct profile_options keep = {.keep_samples = true};

Test(thread_samples, main_thread_comes_first_and_samples_are_sorted)
{
	/* As when a later recording is merged before an earlier one. */
	static const struct timed_sample rows[] = {
		{TIMED_WORKER, 7000, 500, 0, 0, 0, {{0}}},
		{TIMED_MAIN, 7000, 1000, 0, 0, 1, {{TIMED_FIB, 0}}},
		{TIMED_MAIN, 8000, 1000, 0, 0, 1, {{TIMED_FIB, 0}}},
		{TIMED_MAIN, 3000, 1500, 0, 0, 1, {{TIMED_FIB, 0}}},
		{TIMED_WORKER, 4000, 2700, 0, 0, 0, {{0}}},
		{TIMED_MAIN, 4000, 1000, 0, 0, 0, {{0}}},
		{TIMED_MAIN, 4000, 0, 0, 0, 1, {{TIMED_FIB, 0}}},
	};
	static const struct {
		uint32_t thread, nr, samples[5];
	} expected[] = {
		{TIMED_MAIN, 5, {3, 5, 6, 1, 2}},
		{TIMED_WORKER, 2, {4, 0}},
	};
	struct profile *profile = timed_profile(&keep, rows, NR(rows));
	struct thread_samples samples;

	cr_assert(zero(int, thread_samples_init(&samples, profile)));
	cr_assert(eq(uint, samples.nr_slices, NR(expected)));
	for (size_t i = 0; i < NR(expected); i++) {
		const struct thread_slice *slice = &samples.slices[i];

		cr_expect(eq(uint, slice->thread, expected[i].thread));
		cr_assert(eq(uint, slice->end - slice->first, expected[i].nr));
		for (uint32_t k = 0; k < expected[i].nr; k++)
			cr_expect(
				eq(uint, samples.order[slice->first + k], expected[i].samples[k]));
	}
	cr_expect(eq(ulong, samples.start_ns, 1300));
	cr_expect(eq(ulong, samples.end_ns, 8000));
	cr_expect(eq(ulong, samples.slices[0].with_frames_ns, 3500));
	cr_expect(eq(uint, samples.busiest, 0));
	thread_samples_done(&samples);
	profile_destroy(profile);
}

/* By CPU time if there is any, else by time in Python. Idle threads are not busy. */
Test(thread_samples, finds_the_busiest_thread)
{
	static const struct {
		uint64_t cpu_ns[2];
		uint32_t nr_frames[2];
		uint32_t busiest;
	} cases[] = {
		{{5, 4}, {1, 1}, 0}, {{4, 5}, {1, 1}, 1}, {{0, 0}, {1, 1}, 0},
		{{0, 0}, {0, 1}, 1}, {{1, 0}, {0, 1}, 0},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct timed_sample rows[] = {
			{TIMED_MAIN,
			 100,
			 100,
			 cases[i].cpu_ns[0],
			 0,
			 cases[i].nr_frames[0],
			 {{TIMED_FIB, 0}}},
			{TIMED_WORKER,
			 100,
			 100,
			 cases[i].cpu_ns[1],
			 0,
			 cases[i].nr_frames[1],
			 {{TIMED_FIB, 0}}},
		};
		struct profile *profile = timed_profile(&keep, rows, NR(rows));
		struct thread_samples samples;

		cr_assert(zero(int, thread_samples_init(&samples, profile)));
		cr_expect(eq(uint, samples.busiest, cases[i].busiest), "case %zu", i);
		thread_samples_done(&samples);
		profile_destroy(profile);
	}
}

/* Samples whose thread has no row come last; threads without samples are left out. */
Test(thread_samples, samples_without_a_thread_row_come_last)
{
	static const struct profile_sample lost = {
		.time_ns = 10, .node = PROFILE_NONE, .thread = PROFILE_NONE};
	static const struct timed_sample row = {TIMED_WORKER, 20, 5, 0, 0, 0, {{0}}};
	struct profile *profile = timed_profile(&keep, &row, 1);
	struct thread_samples samples;
	struct text text = {0};

	cr_assert(zero(int, profile_add(profile, PROFILE_SHOWN, &lost)));
	cr_assert(zero(int, thread_samples_init(&samples, profile)));
	cr_assert(eq(uint, samples.nr_slices, 2));
	cr_expect(eq(uint, samples.slices[0].thread, TIMED_WORKER));
	cr_expect(eq(uint, samples.slices[1].thread, PROFILE_NONE));
	cr_expect(zero(ptr, (void *)thread_samples_process(profile, PROFILE_NONE)));
	thread_samples_name(&text, profile, PROFILE_NONE);
	cr_expect(eq(str, text.bytes, (char *)LABEL_OTHER_THREADS));
	text_done(&text);
	thread_samples_done(&samples);
	profile_destroy(profile);
}

Test(thread_samples, profile_without_samples_has_no_slices)
{
	struct profile *profile = profile_create(&keep);
	struct thread_samples samples;

	cr_assert(zero(int, thread_samples_init(&samples, profile)));
	cr_expect(eq(uint, samples.nr_slices, 0));
	cr_expect(eq(ulong, samples.start_ns, 0));
	thread_samples_done(&samples);
	profile_destroy(profile);
}

Test(thread_samples, names_threads)
{
	static const struct {
		struct profile_thread thread;
		const char *name;
	} cases[] = {
		{{.tid = 5, .name = "MainThread"}, "MainThread"},
		{{.tid = 5}, "thread 5"},
		{{.tid = 5, .name = "a\n", .interpreter_id = 3}, "a\\x0a (interpreter 3)"},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = profile_create(&keep);
		struct text text = {0};
		uint32_t row;

		cr_assert(zero(int, profile_add_thread(profile, &cases[i].thread, &row)));
		thread_samples_name(&text, profile, row);
		cr_expect(eq(str, text.bytes, (char *)cases[i].name));
		text_done(&text);
		profile_destroy(profile);
	}
}

/* With a root per thread, samples without Python frames have a node, and are idle all the same. */
Test(thread_samples, thread_roots_are_no_python_frames)
{
	static const struct profile_options options = {.keep_samples = true, .by_thread = true};
	static const struct timed_sample rows[] = {
		{TIMED_MAIN, 7000, 1000, 0, 0, 0, {{0}}},
		{TIMED_MAIN, 8000, 1000, 0, 0, 1, {{TIMED_FIB, 0}}},
	};
	struct profile *profile = timed_profile(&options, rows, NR(rows));
	uint32_t nr;
	const struct profile_sample *kept = profile_samples(profile, &nr);

	cr_assert(ne(uint, kept[0].node, PROFILE_NONE));
	cr_expect(eq(uint, thread_samples_node(profile, kept[0].node), PROFILE_NONE));
	cr_expect(eq(uint, thread_samples_node(profile, kept[1].node), kept[1].node));
	profile_destroy(profile);
}
