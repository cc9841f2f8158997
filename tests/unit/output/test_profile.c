/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/profile.h"
#include "tests/support/made_sample.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct function functions[] = {
	{0, 10, "main", "app.py", FUNCTION_PYTHON},
	{1, 20, "fib", "app.py", FUNCTION_PYTHON},
	{2, 30, "leaf", "lib.py", FUNCTION_PYTHON},
};
static const struct sample_thread main_thread = {.id = 0, .tid = 100, .name = "python3"};
static const struct sample_thread worker = {.id = 1, .slot = 1, .tid = 101, .name = "worker"};

static struct profile *new_profile(bool by_line, bool by_thread)
{
	const struct profile_options options = {.by_line = by_line, .by_thread = by_thread};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	return profile;
}

static uint32_t nr_nodes(const struct profile *profile)
{
	uint32_t nr;

	(void)profile_nodes(profile, &nr);
	return nr;
}

static uint32_t nr_frames(const struct profile *profile)
{
	uint32_t nr;

	(void)profile_frames(profile, &nr);
	return nr;
}

Test(profile, empty_profile_has_no_rows)
{
	struct profile *profile = new_profile(false, false);
	struct profile_total *totals;

	cr_expect(eq(u32, nr_nodes(profile), 0));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, 0));
	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
	free(totals);
	profile_destroy(profile);
	profile_destroy(NULL);
}

Test(profile, recursion_counts_once)
{
	const struct frame frames[] = {
		{&functions[0], 11}, {&functions[1], 21}, {&functions[2], 31},
		{&functions[1], 22}, {&functions[1], 21},
	};
	struct profile *profile = new_profile(false, false);
	struct profile_total *totals;

	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 5, 0, 7), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 2, 2, 5), 0));
	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));

	cr_expect(eq(u32, nr_nodes(profile), 5));
	cr_expect(eq(u32, nr_frames(profile), 3));
	cr_expect(eq(u64, totals[0].total_ns, 12));
	cr_expect(eq(u64, totals[0].self_ns, 0));
	cr_expect(eq(u64, totals[1].total_ns, 12));
	cr_expect(eq(u64, totals[1].self_ns, 12));
	cr_expect(eq(u64, totals[2].total_ns, 7));
	cr_expect(eq(u64, totals[2].self_ns, 0));
	free(totals);
	profile_destroy(profile);
}

Test(profile, rows_are_functions_or_lines)
{
	const struct frame one[] = {{&functions[0], 11}, {&functions[2], 31}};
	const struct frame two[] = {{&functions[0], 12}, {&functions[2], 31}};
	static const struct {
		bool by_line;
		uint32_t nr_nodes, nr_frames;
		int32_t line;
	} cases[] = {{false, 2, 2, 10}, {true, 4, 3, 11}};

	for (size_t i = 0; i < NR(cases); i++) {
		struct profile *profile = new_profile(cases[i].by_line, false);
		uint32_t nr;

		cr_assert(eq(int, push_sample(profile, &main_thread, one, 2, 0, 1), 0));
		cr_assert(eq(int, push_sample(profile, &main_thread, two, 2, 0, 1), 0));
		cr_expect(eq(u32, nr_nodes(profile), cases[i].nr_nodes));
		cr_expect(eq(u32, nr_frames(profile), cases[i].nr_frames));
		cr_expect(eq(i32, profile_frames(profile, &nr)[0].line, cases[i].line));
		(void)profile_functions(profile, &nr);
		cr_expect(eq(u32, nr, 2));
		profile_destroy(profile);
	}
}

Test(profile, renamed_thread_keeps_its_root)
{
	const struct frame frames[] = {{&functions[0], 11}};
	struct profile *profile = new_profile(false, true);
	struct sample_thread renamed = worker;
	uint32_t nr;

	(void)strcpy(renamed.name, "another name");
	profile_sink(profile)->ops->renamed(profile_sink(profile), &renamed); /* no sample yet */
	cr_assert(eq(int, push_sample(profile, &worker, frames, 1, 0, 1), 0));
	profile_sink(profile)->ops->renamed(profile_sink(profile), &renamed);
	cr_assert(eq(int, push_sample(profile, &renamed, frames, 1, 1, 1), 0));
	cr_expect(eq(str, (char *)profile_threads(profile, &nr)[0].name, (char *)"another name"));
	cr_expect(eq(u32, nr, 1));
	profile_destroy(profile);
}

Test(profile, each_thread_has_its_own_root_and_path)
{
	const struct frame frames[] = {{&functions[0], 11}, {&functions[1], 21}};
	struct profile *profile = new_profile(false, true);
	const struct profile_thread *threads;
	const struct profile_frame *rows;
	uint32_t nr;

	cr_assert(eq(int, push_sample(profile, &worker, frames, 2, 0, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 1, 0, 1), 0));
	cr_assert(eq(int, push_sample(profile, &worker, frames, 2, 2, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, NULL, 0, 0, 9), 0));

	threads = profile_threads(profile, &nr);
	cr_assert(eq(u32, nr, 2));
	cr_expect(eq(str, (char *)threads[0].name, (char *)"worker"));
	cr_expect(eq(i32, threads[1].tid, 100));
	rows = profile_frames(profile, &nr);
	cr_assert(eq(u32, nr, 4));
	cr_expect(eq(u32, rows[0].function, PROFILE_NONE));
	cr_expect(eq(u32, rows[0].owner, 0));
	cr_expect(eq(u32, rows[1].owner, PROFILE_NONE));
	cr_expect(eq(u32, nr_nodes(profile), 5));
	/* worker, main, fib; python3 (with the idle sample), main */
	cr_expect(eq(u64, profile_nodes(profile, &nr)[2].self_samples, 2));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[3].self_samples, 1));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[3].self_ns, 9));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->nr_frameless, 1));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->frameless_ns, 9));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, 12));
	profile_destroy(profile);
}

/* A new thread in the slot of an ended one: its whole stack is read, whatever nr_unchanged is. */
Test(profile, reused_slot_starts_a_new_thread)
{
	const struct frame frames[] = {{&functions[0], 11}, {&functions[1], 21}};

	for (int by_thread = 0; by_thread <= 1; by_thread++) {
		struct profile *profile = new_profile(false, by_thread);
		struct sample_thread next = {.id = 2, .slot = worker.slot, .tid = 102};
		struct sample_thread renamed = worker;
		const struct profile_thread *threads;
		uint32_t nr;

		cr_assert(zero(int, push_sample(profile, &worker, frames, 2, 0, 1)));
		cr_assert(zero(int, push_sample(profile, &next, frames + 1, 1, 1, 1)));
		(void)strcpy(renamed.name, "too late");
		profile_sink(profile)->ops->renamed(profile_sink(profile), &renamed);
		(void)strcpy(next.name, "next");
		profile_sink(profile)->ops->renamed(profile_sink(profile), &next);
		cr_expect(eq(u64, profile_nr_threads(profile), 2));
		threads = profile_threads(profile, &nr);
		cr_assert(eq(u32, nr, by_thread ? 2 : 0));
		if (by_thread) {
			cr_expect(eq(str, (char *)threads[0].name, (char *)"worker"));
			cr_expect(eq(str, (char *)threads[1].name, (char *)"next"));
		}
		/* main, fib; fib; the two roots */
		cr_expect(eq(u32, nr_nodes(profile), by_thread ? 5 : 3));
		profile_destroy(profile);
	}
}

/* Samples counted as the function's own. */
static uint64_t self_samples_of(const struct profile *profile, const char *qualname)
{
	uint32_t nr, nr_functions;
	const struct profile_node *nodes = profile_nodes(profile, &nr);
	const struct profile_frame *rows = profile_frames(profile, &nr_functions);
	const struct profile_function *names = profile_functions(profile, &nr_functions);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t function = rows[nodes[i].frame].function;

		if (function != PROFILE_NONE && strcmp(names[function].qualname, qualname) == 0)
			sum += nodes[i].self_samples;
	}
	return sum;
}

Test(profile, stacks_beyond_the_limit_share_a_row)
{
	enum { NR_STACKS = 100, MAX_NODES = 10 };
	const struct profile_options options = {.by_line = true, .max_nodes = MAX_NODES};
	struct profile *profile = profile_create(&options);

	cr_assert(ne(ptr, profile, NULL));
	for (int i = 0; i < NR_STACKS; i++) {
		const struct frame frames[] = {{&functions[0], 11}, {&functions[1], i}};

		cr_assert(zero(int, push_sample(profile, &worker, frames, 2, 1, 3)));
	}
	/* A stack that is known keeps its node. */
	const struct frame known[] = {{&functions[0], 11}};
	cr_assert(zero(int, push_sample(profile, &worker, known, 1, 1, 3)));
	cr_expect(le(u32, nr_nodes(profile), MAX_NODES));
	cr_expect(eq(u64, self_samples_of(profile, "main"), 1));
	cr_expect(eq(u64, self_samples_of(profile, "fib"), MAX_NODES - 4));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->nr_other_samples,
		     NR_STACKS - (MAX_NODES - 4)));
	cr_expect(eq(u64, self_samples_of(profile, PROFILE_OTHER_STACKS),
		     profile_sums(profile, PROFILE_SHOWN)->nr_other_samples));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, 3 * (NR_STACKS + 1)));
	profile_destroy(profile);
}

/* Endless threads, one after the other. */
Test(profile, threads_beyond_the_limit_share_a_root)
{
	enum { NR_MORE = 1000 };
	const struct frame frames[] = {{&functions[0], 11}};

	for (int by_thread = 0; by_thread <= 1; by_thread++) {
		struct profile *profile = new_profile(false, by_thread);
		const struct profile_frame *rows;
		uint32_t nr, nr_shared = 0;

		for (uint32_t id = 0; id < PROFILE_MAX_THREADS + NR_MORE; id++) {
			const struct sample_thread thread = {.id = id, .tid = (pid_t)id};

			cr_assert(zero(int, push_sample(profile, &thread, frames, 1, 0, 1)));
		}
		cr_expect(eq(u64, profile_nr_threads(profile), PROFILE_MAX_THREADS + NR_MORE));
		(void)profile_threads(profile, &nr);
		cr_expect(eq(u32, nr, by_thread ? PROFILE_MAX_THREADS : 0));
		rows = profile_frames(profile, &nr);
		for (uint32_t i = 0; i < nr; i++)
			nr_shared +=
				rows[i].function == PROFILE_NONE && rows[i].owner == PROFILE_NONE;
		cr_expect(eq(u32, nr_shared, by_thread));
		cr_expect(
			eq(u32, nr_nodes(profile), by_thread ? 2 * (PROFILE_MAX_THREADS + 1) : 1));
		cr_expect(eq(u64, profile_nodes(profile, &nr)[nr_nodes(profile) - 1].self_samples,
			     by_thread ? NR_MORE : PROFILE_MAX_THREADS + NR_MORE));
		profile_destroy(profile);
	}
}

/* Freeing the room of a deep stack does not damage the next stacks. */
Test(profile, freeing_a_deep_path_keeps_the_next_stacks)
{
	enum { DEPTH = 5000, NR_SHALLOW = 20000 };
	static struct frame frames[DEPTH];
	struct profile *profile = new_profile(false, false);

	for (size_t i = 0; i < DEPTH; i++)
		frames[i] = (struct frame){&functions[i % 3], 1};
	for (int turn = 0; turn < 2; turn++) {
		cr_assert(zero(int, push_sample(profile, &worker, frames, DEPTH, turn ? 2 : 0, 1)));
		for (int i = 0; i < NR_SHALLOW; i++)
			cr_assert(zero(int, push_sample(profile, &worker, frames, 2, 2, 1)));
	}
	cr_expect(eq(u32, nr_nodes(profile), DEPTH));
	cr_expect(eq(u64, self_samples_of(profile, "fib"), 2 * NR_SHALLOW + 2));
	profile_destroy(profile);
}

/* After an exec, another sampler gives a thread another id. */
Test(profile, main_thread_continues_after_an_exec)
{
	static const struct sample_thread first = {
		.id = 0, .tid = 100, .name = "python3", .is_main = true};
	static const struct sample_thread again = {
		.id = 1, .tid = 100, .name = "python3", .is_main = true};
	static const struct sample_thread other = {.id = 2, .tid = 100, .name = "python3"};
	static const struct sample_thread renamed = {
		.id = 3, .tid = 100, .name = "other", .is_main = true};
	static const struct sample_thread elsewhere = {
		.id = 4, .tid = 100, .name = "other", .is_main = true, .process = 1};
	static const struct sample_thread *const threads[] = {&first, &again, &other, &renamed,
							      &elsewhere};
	static const uint32_t rows[] = {0, 0, 1, 2, 3};
	const struct frame frames[] = {{&functions[0], 11}, {&functions[2], 31}};
	const struct process_info process = {.pid = 100};
	struct profile *profile = new_profile(false, true);
	uint32_t nr;

	for (uint32_t i = 0; i < 2; i++)
		cr_assert(eq(int, profile_add_process(profile, &process, &nr), 0));
	for (size_t i = 0; i < NR(rows); i++) {
		cr_assert(eq(int, push_sample(profile, threads[i], frames, 2, 0, 1), 0));
		(void)profile_threads(profile, &nr);
		cr_expect(eq(u32, nr, rows[i] + 1), "thread %zu", i);
	}
	cr_expect(eq(u64, profile_nr_threads(profile), 4));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[2].self_samples, 2), "of both programs");
	cr_expect(eq(u32, nr, 12), "root, main and leaf of each thread");
	profile_destroy(profile);
}

Test(profile, idle_samples_have_no_node)
{
	struct profile *profile = new_profile(false, false);

	cr_assert(eq(int, push_sample(profile, &main_thread, NULL, 0, 0, 3), 0));
	cr_expect(eq(u32, nr_nodes(profile), 0));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, 3));
	cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->nr_frameless, 1));
	profile_destroy(profile);
}

/* nr_unchanged may exceed the depth of this stack or of the previous one; the excess is ignored. */
Test(profile, excess_nr_unchanged_is_ignored)
{
	const struct frame frames[] = {
		{&functions[0], 11}, {&functions[1], 21}, {&functions[2], 31}};
	struct profile *profile = new_profile(false, false);
	uint32_t nr;

	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 1, 1, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 3, UINT32_MAX, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 2, 3, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, NULL, 0, 7, 1), 0));
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, 3, 2, 1), 0));
	cr_expect(eq(u32, nr_nodes(profile), 3));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[0].self_samples, 1));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[1].self_samples, 1));
	cr_expect(eq(u64, profile_nodes(profile, &nr)[2].self_samples, 2));
	profile_destroy(profile);
}

Test(profile, copies_names_and_paths)
{
	char name[] = "gone";
	char path[] = "gone.py";
	const struct function function = {0, 1, name, path, FUNCTION_PYTHON};
	const struct frame frame = {&function, 2};
	struct profile *profile = new_profile(true, false);
	uint32_t nr;

	cr_assert(eq(int, push_sample(profile, &main_thread, &frame, 1, 0, 1), 0));
	memset(name, 'x', sizeof(name) - 1);
	memset(path, 'x', sizeof(path) - 1);
	cr_expect(eq(str, profile_functions(profile, &nr)[0].qualname, (char *)"gone"));
	cr_expect(eq(str, (char *)profile_functions(profile, &nr)[0].path, (char *)"gone.py"));
	profile_destroy(profile);
}

#define NR_STACKS 100000u

Test(profile, counts_many_stacks)
{
	struct profile *profile = new_profile(true, false);
	struct profile_total *totals;
	uint64_t self = 0;

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < NR_STACKS; i++) {
			const struct frame frames[] = {
				{&functions[0], 1},
				{&functions[1], (int32_t)(i % 1000)},
				{&functions[2], (int32_t)(i / 1000)},
			};

			cr_assert(eq(int, push_sample(profile, &main_thread, frames, 3, 1, 1), 0));
		}
	}
	cr_expect(eq(u32, nr_nodes(profile), 1 + 1000 + NR_STACKS));
	cr_expect(eq(u32, nr_frames(profile), 1 + 1000 + NR_STACKS / 1000));
	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
	for (uint32_t i = 0; i < nr_frames(profile); i++)
		self += totals[i].self_ns;
	cr_expect(eq(u64, self, 2 * NR_STACKS));
	cr_expect(eq(u64, totals[0].total_ns, 2 * NR_STACKS));
	free(totals);
	profile_destroy(profile);
}

/* A tree deeper than recursion on the C stack could handle. */
Test(profile, counts_very_deep_stacks)
{
	enum { DEPTH = 1000000 };
	struct frame *frames = calloc(DEPTH, sizeof(*frames));
	struct profile *profile = new_profile(false, false);
	struct profile_total *totals;

	cr_assert(frames != NULL);
	for (int i = 0; i < DEPTH; i++)
		frames[i].function = &functions[i % 2];
	cr_assert(eq(int, push_sample(profile, &main_thread, frames, DEPTH, 0, 1), 0));
	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
	cr_expect(eq(u64, totals[0].total_ns, 1));
	cr_expect(eq(u64, totals[1].total_ns, 1));
	free(totals);
	free(frames);
	profile_destroy(profile);
}

/*
 * Random samples, counted a second time in the plainest way: a list of all samples, each a list
 * of (function, line) rows.
 */
#define NR_SAMPLES   1500
#define MAX_DEPTH    12
#define NR_FUNCTIONS 6
#define NR_THREADS   3

struct row {
	uint32_t function; /* or NR_FUNCTIONS + thread: the thread's root */
	int32_t line;
};

struct expected_sample {
	struct row rows[MAX_DEPTH + 1];
	uint32_t nr;
	uint64_t wall_ns;
};

struct random_stacks {
	struct function functions[NR_FUNCTIONS];
	char names[NR_FUNCTIONS][4];
	struct sample_thread threads[NR_THREADS];
	struct frame frames[NR_THREADS][MAX_DEPTH];
	uint32_t depths[NR_THREADS];
	struct expected_sample expected[NR_SAMPLES];
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static struct random_stacks *random_stacks_create(void)
{
	struct random_stacks *stacks = calloc(1, sizeof(*stacks));

	cr_assert(stacks != NULL);
	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) {
		(void)snprintf(stacks->names[i], sizeof(stacks->names[i]), "f%u", i);
		stacks->functions[i] =
			(struct function){i, (int32_t)i, stacks->names[i], "p", FUNCTION_PYTHON};
	}
	for (uint32_t i = 0; i < NR_THREADS; i++)
		stacks->threads[i] =
			(struct sample_thread){.id = i, .slot = i, .tid = (pid_t)i + 1};
	return stacks;
}

/* Change the inner frames of a thread's stack. Returns the number of unchanged frames. */
static uint32_t stack_change(struct random_stacks *stacks, uint32_t thread, uint32_t *random)
{
	struct frame *stack = stacks->frames[thread];
	uint32_t kept = next_random(random) % (stacks->depths[thread] + 1);

	stacks->depths[thread] = kept + next_random(random) % (MAX_DEPTH + 1 - kept);
	for (uint32_t i = kept; i < stacks->depths[thread]; i++) {
		stack[i].function = &stacks->functions[next_random(random) % NR_FUNCTIONS];
		stack[i].line = (int32_t)(next_random(random) % 3);
	}
	return kept;
}

static void record_expected(struct expected_sample *expected, const struct random_stacks *stacks,
			    uint32_t thread, const struct profile_options *options)
{
	if (options->by_thread)
		expected->rows[expected->nr++] = (struct row){NR_FUNCTIONS + thread, 0};
	for (uint32_t i = 0; i < stacks->depths[thread]; i++) {
		const struct frame *frame = &stacks->frames[thread][i];

		expected->rows[expected->nr++] = (struct row){
			frame->function->id,
			options->by_line ? frame->line : frame->function->first_line,
		};
	}
}

static struct row row_of(const struct profile *profile, uint32_t frame)
{
	uint32_t nr;
	const struct profile_frame *row = &profile_frames(profile, &nr)[frame];

	if (row->function == PROFILE_NONE)
		return (struct row){
			NR_FUNCTIONS + (uint32_t)profile_threads(profile, &nr)[row->owner].tid - 1,
			0};
	return (struct row){
		(uint32_t)atoi(profile_functions(profile, &nr)[row->function].qualname + 1),
		row->line};
}

static bool row_equal(struct row a, struct row b)
{
	return a.function == b.function && a.line == b.line;
}

static bool node_equals(const struct profile *profile, uint32_t node,
			const struct expected_sample *expected)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	for (uint32_t i = expected->nr; i-- > 0; node = nodes[node].parent) {
		if (node == PROFILE_NONE ||
		    !row_equal(row_of(profile, nodes[node].frame), expected->rows[i]))
			return false;
	}
	return node == PROFILE_NONE;
}

static void check_nodes(const struct profile *profile, const struct random_stacks *stacks)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	for (uint32_t node = 0; node < nr; node++) {
		uint64_t samples = 0;
		uint64_t wall_ns = 0;

		cr_assert(nodes[node].parent == PROFILE_NONE || nodes[node].parent < node);
		for (size_t i = 0; i < NR_SAMPLES; i++) {
			if (node_equals(profile, node, &stacks->expected[i])) {
				samples++;
				wall_ns += stacks->expected[i].wall_ns;
			}
		}
		cr_assert(eq(u64, nodes[node].self_samples, samples), "node %u", node);
		cr_assert(eq(u64, nodes[node].self_ns, wall_ns), "node %u", node);
	}
}

static void check_totals(const struct profile *profile, const struct random_stacks *stacks)
{
	struct profile_total *totals;
	uint64_t all_self_ns = profile_sums(profile, PROFILE_SHOWN)->frameless_ns;
	uint32_t nr = nr_frames(profile);

	cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
	for (uint32_t frame = 0; frame < nr; frame++) {
		struct row row = row_of(profile, frame);
		struct profile_total expected = {0};

		for (size_t i = 0; i < NR_SAMPLES; i++) {
			const struct expected_sample *sample = &stacks->expected[i];
			bool found = false;

			for (uint32_t j = 0; j < sample->nr; j++)
				found |= row_equal(sample->rows[j], row);
			expected.total_ns += found ? sample->wall_ns : 0;
			expected.total_samples += found;
			found = sample->nr && row_equal(sample->rows[sample->nr - 1], row);
			expected.self_ns += found ? sample->wall_ns : 0;
		}
		cr_assert(memcmp(&totals[frame], &expected, sizeof(expected)) == 0, "frame %u",
			  frame);
		if (row.function < NR_FUNCTIONS)
			all_self_ns += expected.self_ns;
	}
	cr_expect(eq(u64, all_self_ns, profile_sums(profile, PROFILE_SHOWN)->time_ns));
	free(totals);
}

Test(profile, agrees_with_a_naive_count)
{
	for (uint32_t seed = 0; seed < 8; seed++) {
		const struct profile_options options = {.by_line = seed & 1, .by_thread = seed & 2};
		struct profile *profile = new_profile(options.by_line, options.by_thread);
		struct random_stacks *stacks = random_stacks_create();
		uint32_t random = seed * 2654435761u + 1;

		for (size_t i = 0; i < NR_SAMPLES; i++) {
			uint32_t thread = next_random(&random) % NR_THREADS;
			uint32_t kept = stack_change(stacks, thread, &random);

			/* A smaller nr_unchanged is allowed. */
			if (next_random(&random) % 4 == 0)
				kept /= 2;
			stacks->expected[i].wall_ns = next_random(&random) % 1000;
			record_expected(&stacks->expected[i], stacks, thread, &options);
			cr_assert(eq(int,
				     push_sample(profile, &stacks->threads[thread],
						 stacks->frames[thread], stacks->depths[thread],
						 kept, stacks->expected[i].wall_ns),
				     0));
		}
		check_nodes(profile, stacks);
		check_totals(profile, stacks);
		free(stacks);
		profile_destroy(profile);
	}
}

/* Push a sample with the properties that the modes distinguish. */
static int push(struct profile *profile, const struct sample_thread *thread, uint32_t nr_frames,
		uint32_t nr_unchanged, uint32_t flags, uint64_t cpu_ns)
{
	static const struct frame frames[] = {
		{&functions[0], 11}, {&functions[1], 21}, {&functions[2], 31}};
	struct sample_sink *sink = profile_sink(profile);
	const struct sample sample = {
		.wall_ns = 100,
		.cpu_ns = cpu_ns,
		.thread = thread,
		.frames = frames,
		.nr_frames = nr_frames,
		.nr_unchanged = nr_unchanged,
		.flags = flags,
	};

	return sink->ops->sample(sink, &sample);
}

/* Each sample's weight is in the profile exactly once, or not at all. */
Test(profile, modes_choose_samples_and_weights)
{
	static const struct {
		enum profile_mode mode;
		uint64_t nr_shown, ns;
		uint32_t nr_threads;
	} cases[] = {
		{PROFILE_WALL, 5, 500, 2}, {PROFILE_BUSY, 5, 500, 2},	   {PROFILE_CPU, 2, 107, 1},
		{PROFILE_GIL, 2, 200, 1},  {PROFILE_EXCEPTION, 1, 100, 1}, {PROFILE_COUNT, 5, 5, 2},
	};
	const uint32_t ran = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;

	for (size_t i = 0; i < NR(cases); i++) {
		const struct profile_options options = {.mode = cases[i].mode, .by_thread = true};
		struct profile *profile = profile_create(&options);
		const char *name = profile_mode_name(cases[i].mode);
		const struct profile_account *account =
			&profile_sums(profile, PROFILE_SHOWN)->account;
		enum profile_mode parsed;
		uint32_t nr_threads;

		cr_assert(zero(int, push(profile, &main_thread, 3, 0, 0, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 3, SAMPLE_CPU_MEASURED, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 3, ran | SAMPLE_HOLDS_GIL, 7)));
		cr_assert(zero(int, push(profile, &main_thread, 2, 2,
					 ran | SAMPLE_HOLDS_GIL | SAMPLE_EXCEPTION, 100)));
		cr_assert(zero(int, push(profile, &worker, 1, 0, SAMPLE_WAITS_FOR_GIL, 0)));
		cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, cases[i].ns), "%s",
			  name);
		cr_expect(eq(u64, account->nr_shown, cases[i].nr_shown), "%s", name);
		cr_expect(eq(u64, account->nr_samples, 5), "%s", name);
		cr_expect(eq(u64, account->wall_ns, 500), "%s", name);
		cr_expect(eq(u64, account->cpu_ns, 107), "%s", name);
		cr_expect(eq(u64, account->nr_cpu_measured, 3), "%s", name);
		(void)profile_threads(profile, &nr_threads);
		cr_expect(eq(u32, nr_threads, cases[i].nr_threads), "%s", name);
		cr_assert(profile_mode_parse(name, &parsed), "%s", name);
		cr_expect(eq(int, (int)parsed, (int)cases[i].mode));
		profile_destroy(profile);
	}
	cr_expect(not(profile_mode_parse("", &(enum profile_mode){0})));
}

/* Threads that wait have neither rows nor weight in a profile of busy ones, but are counted. */
Test(profile, waiting_threads_are_counted_and_not_shown)
{
	static const struct {
		enum profile_mode mode;
		uint64_t nr_shown, nr_idle, idle_ns, nr_idle_threads;
		uint32_t nr_threads;
	} cases[] = {
		{PROFILE_WALL, 6, 0, 0, 0, 2},
		{PROFILE_BUSY, 3, 3, 300, 2, 1},
		{PROFILE_GIL, 1, 0, 0, 0, 1},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct profile_options options = {.mode = cases[i].mode, .by_thread = true};
		struct profile *profile = profile_create(&options);
		const char *name = profile_mode_name(cases[i].mode);
		const struct profile_account *account =
			&profile_sums(profile, PROFILE_SHOWN)->account;
		uint32_t nr_threads;

		cr_assert(zero(int, push(profile, &worker, 1, 0, SAMPLE_IDLE, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 0, SAMPLE_HOLDS_GIL, 0)));
		cr_assert(zero(int, push(profile, &worker, 1, 1, SAMPLE_IDLE, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 3, SAMPLE_WAITS_FOR_GIL, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 3, SAMPLE_IDLE, 0)));
		cr_assert(zero(int, push(profile, &main_thread, 3, 3, 0, 0)));
		cr_expect(eq(u64, account->nr_samples, 6), "%s", name);
		cr_expect(eq(u64, account->nr_shown, cases[i].nr_shown), "%s", name);
		cr_expect(eq(u64, account->nr_idle, cases[i].nr_idle), "%s", name);
		cr_expect(eq(u64, account->idle_ns, cases[i].idle_ns), "%s", name);
		cr_expect(eq(u64, account->nr_idle_threads, cases[i].nr_idle_threads), "%s", name);
		(void)profile_threads(profile, &nr_threads);
		cr_expect(eq(u32, nr_threads, cases[i].nr_threads), "%s", name);
		profile_destroy(profile);
	}
}

/* nr_unchanged refers to the previous sample, which this mode left out. */
Test(profile, skipped_samples_keep_the_path_correct)
{
	static const struct frame before[] = {
		{&functions[0], 11}, {&functions[1], 21}, {&functions[2], 31}};
	static const struct frame after[] = {
		{&functions[0], 11}, {&functions[2], 31}, {&functions[1], 21}};
	const struct profile_options options = {.mode = PROFILE_GIL};
	struct profile *profile = profile_create(&options);
	struct sample_sink *sink = profile_sink(profile);
	struct sample sample = {.wall_ns = 1,
				.thread = &main_thread,
				.frames = before,
				.nr_frames = 3,
				.flags = SAMPLE_HOLDS_GIL};
	struct profile_total *totals;

	cr_assert(zero(int, sink->ops->sample(sink, &sample)));
	sample.frames = after;
	sample.nr_unchanged = 1;
	sample.flags = 0;
	cr_assert(zero(int, sink->ops->sample(sink, &sample)));
	sample.nr_unchanged = 3;
	sample.flags = SAMPLE_HOLDS_GIL;
	cr_assert(zero(int, sink->ops->sample(sink, &sample)));
	cr_expect(eq(u32, nr_nodes(profile), 5));
	cr_assert(zero(int, profile_totals(profile, PROFILE_SHOWN, &totals)));
	cr_expect(eq(u64, totals[1].self_ns, 1), "fib");
	cr_expect(eq(u64, totals[2].self_ns, 1), "leaf");
	free(totals);
	profile_destroy(profile);
}

/* Paths can be long and a file has many functions, so they share one string. */
Test(profile, functions_of_a_file_share_its_path)
{
	const struct profile_options options = {0};
	struct profile *profile = profile_create(&options);
	const struct profile_function *rows;
	char paths[4][8] = {"a.py", "b.py", "a.py", "a.py"};
	uint32_t nr, index;

	for (int32_t i = 0; i < 4; i++) {
		const struct function function = {
			.first_line = i, .qualname = "f", .path = paths[i]};

		cr_assert(eq(int, profile_get_function(profile, &function, &index), 0));
		cr_assert(eq(u32, index, (uint32_t)i));
	}
	memset(paths, 0, sizeof(paths));
	rows = profile_functions(profile, &nr);
	cr_assert(eq(u32, nr, 4));
	cr_expect(eq(str, (char *)rows[0].path, (char *)"a.py"));
	cr_expect(eq(str, (char *)rows[1].path, (char *)"b.py"));
	cr_expect(rows[2].path == rows[0].path && rows[3].path == rows[0].path);
	profile_destroy(profile);
}

/* The row of a function that has one frame. */
static uint32_t frame_of(const struct profile *profile, const char *qualname)
{
	uint32_t nr_functions, nr_frames;
	const struct profile_function *rows = profile_functions(profile, &nr_functions);
	const struct profile_frame *frames = profile_frames(profile, &nr_frames);

	for (uint32_t i = 0; i < nr_frames; i++)
		if (frames[i].function != PROFILE_NONE &&
		    strcmp(rows[frames[i].function].qualname, qualname) == 0)
			return i;
	cr_fatal("no frame of %s", qualname);
}

Test(profile, plumbing_frames_count_as_their_callers)
{
	static const struct function native_functions[] = {
		{3, 0, "_start", "/usr/bin/python3", FUNCTION_NATIVE},
		{4, 0, "Py_RunMain", "/usr/bin/python3", FUNCTION_NATIVE},
		{5, 0, "_PyEval_Vector", "/usr/bin/python3", FUNCTION_NATIVE},
	};
	const struct frame deep[] = {
		{&native_functions[0], 0}, {&native_functions[1], 0}, {&functions[0], 11},
		{&native_functions[2], 0}, {&functions[1], 21},	      {&native_functions[2], 0},
	};
	static const struct {
		bool by_thread, keep_plumbing;
		uint32_t nr_nodes;
		uint64_t nr_idle, fib_self_ns;
	} cases[] = {{false, false, 2, 1, 15}, {true, false, 3, 1, 15}, {false, true, 10, 0, 8}};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct profile_options options = {
			.by_thread = cases[i].by_thread,
			.keep_plumbing = cases[i].keep_plumbing,
		};
		struct profile *profile = profile_create(&options);
		struct profile_total *totals;
		uint32_t fib;

		cr_assert(profile != NULL);
		cr_assert(eq(int, push_sample(profile, &main_thread, deep, 6, 0, 7), 0));
		/*
		 * A prefix of the same stack; the same functions in other places; plumbing alone.
		 */
		cr_assert(eq(int, push_sample(profile, &main_thread, deep, 5, 5, 5), 0));
		cr_assert(eq(int, push_sample(profile, &main_thread, deep + 1, 4, 0, 3), 0));
		cr_assert(eq(int, push_sample(profile, &main_thread, deep, 2, 0, 1), 0));
		cr_expect(eq(u32, nr_nodes(profile), cases[i].nr_nodes));
		cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->nr_frameless,
			     cases[i].nr_idle));
		cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->time_ns, 16));
		cr_assert(eq(int, profile_totals(profile, PROFILE_SHOWN, &totals), 0));
		fib = frame_of(profile, "fib");
		cr_expect(eq(u64, totals[fib].total_ns, 15));
		cr_expect(eq(u64, totals[fib].self_ns, cases[i].fib_self_ns));
		free(totals);
		profile_destroy(profile);
	}
}
