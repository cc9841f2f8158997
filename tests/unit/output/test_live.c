/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/live/live.h"
#include "output/live/live_figures.h"
#include "output/live/live_json.h"

#define SECOND_NS ((uint64_t)NS_PER_S)
#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const struct function functions[] = {
	{0, 10, "main", "app.py", FUNCTION_PYTHON},
	{1, 20, "fib", "app.py", FUNCTION_PYTHON},
	{2, 30, "leaf", "lib.py", FUNCTION_PYTHON},
};
static const struct sample_thread main_thread = {.id = 0, .tid = 100, .name = "MainThread"};
static const struct sample_thread worker = {.id = 1, .slot = 1, .tid = 101, .name = "worker"};
static const struct sample_thread later = {.id = 2, .slot = 1, .tid = 102, .name = "later"};

static struct live *new_live(enum profile_mode mode)
{
	const struct live_options options = {.mode = mode, .interval_ns = NS_PER_S / 100};
	struct live *live = live_create(&options);

	cr_assert(live != NULL);
	return live;
}

/* Pass on a sample of one second whose stack is main and, below it, the function's line. */
static void push(struct live *live, const struct sample_thread *thread, uint64_t second,
		 const struct frame *inner, uint32_t flags)
{
	struct sample_sink *sink = live_sink(live);
	const struct frame frames[] = {{.function = &functions[0], .line = 11}, *inner};
	const struct sample sample = {
		.time_ns = second * SECOND_NS,
		.wall_ns = NS_PER_S,
		.thread = thread,
		.frames = frames,
		.nr_frames = NR(frames),
		.flags = flags,
	};

	cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
}

static const struct frame fib = {.function = &functions[1], .line = 21};
static const struct frame fib_later = {.function = &functions[1], .line = 22};
static const struct frame leaf = {.function = &functions[2], .line = 31};

static const struct live_row *find_row(const struct live_figures *figures, const char *name)
{
	for (uint32_t i = 0; i < figures->nr_rows; i++)
		if (strcmp(figures->rows[i].function->qualname, name) == 0)
			return &figures->rows[i];
	return NULL;
}

static uint64_t own_s(const struct live *live, const char *name, enum profile_side side)
{
	struct live_figures figures;
	const struct live_row *row;
	uint64_t own_ns;

	cr_assert(eq(int, live_figures_init(&figures, live_profile(live), false), 0));
	row = find_row(&figures, name);
	own_ns = row ? row->weights[side].self_ns : 0;
	live_figures_done(&figures);
	return own_ns / NS_PER_S;
}

/* An interrupt's sample comes after one of a look, and its time may have begun before that. */
Test(live, time_begins_with_the_first_of_all_samples)
{
	struct live *live = new_live(PROFILE_WALL);

	push(live, &main_thread, 3, &fib, 0);
	cr_expect(eq(u64, live_recent_ns(live), SECOND_NS));
	push(live, &worker, 2, &leaf, 0);
	cr_expect(eq(u64, live_recent_ns(live), 2 * SECOND_NS));
	live_destroy(live);
}

/* Samples leave the window one by one, and the sums since the start keep them. */
Test(live, window_slides)
{
	struct live *live = new_live(PROFILE_WALL);

	live_advance(live, SECOND_NS / 2);
	cr_expect(eq(u64, live_recent_ns(live), 0), "there are no samples yet");
	for (uint64_t second = 1; second <= 4; second++)
		push(live, &main_thread, second, &fib, 0);
	for (uint64_t second = 5; second <= 8; second++)
		push(live, &main_thread, second, &leaf, 0);
	cr_expect(eq(u64, own_s(live, "fib", LIVE_ALL), 4));
	cr_expect(eq(u64, own_s(live, "leaf", LIVE_ALL), 4));
	cr_expect(eq(u64, own_s(live, "fib", LIVE_RECENT), 1));
	cr_expect(eq(u64, own_s(live, "leaf", LIVE_RECENT), 4));
	cr_expect(eq(u64, live_recent_ns(live), 5 * SECOND_NS));
	live_advance(live, 11 * SECOND_NS);
	cr_expect(eq(u64, own_s(live, "fib", LIVE_RECENT), 0));
	cr_expect(eq(u64, own_s(live, "leaf", LIVE_RECENT), 2));
	live_advance(live, 100 * SECOND_NS);
	cr_expect(eq(u64, own_s(live, "leaf", LIVE_RECENT), 0));
	cr_expect(eq(u64, profile_sums(live_profile(live), LIVE_RECENT)->time_ns, 0));
	cr_expect(eq(u64, profile_sums(live_profile(live), LIVE_RECENT)->account.nr_samples, 0));
	cr_expect(eq(u64, profile_sums(live_profile(live), LIVE_ALL)->time_ns, 8 * SECOND_NS));
	live_destroy(live);
}

/* More samples than fit leave early, and all figures are those of the ones that are left. */
Test(live, window_is_bounded)
{
	struct live *live = new_live(PROFILE_WALL);
	struct sample_sink *sink = live_sink(live);
	struct sample sample = {
		.thread = &main_thread, .frames = &fib, .nr_frames = 1, .wall_ns = 1};

	for (uint64_t i = 0; i < LIVE_MAX_RECENT + 1000; i++) {
		sample.time_ns = 1 + i;
		cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
	}
	cr_expect(eq(u64, profile_sums(live_profile(live), LIVE_RECENT)->time_ns, LIVE_MAX_RECENT));
	cr_expect(eq(u64, profile_sums(live_profile(live), LIVE_ALL)->time_ns,
		     LIVE_MAX_RECENT + 1000));
	live_destroy(live);
}

Test(live, threads_have_states)
{
	struct live *live = new_live(PROFILE_BUSY);
	struct live_summary summary;
	uint32_t nr;
	const struct live_thread *threads;

	for (uint64_t second = 1; second <= 4; second++) {
		push(live, &main_thread, second, &fib,
		     SAMPLE_HOLDS_GIL | (second == 1 ? SAMPLE_GC : 0));
		push(live, &worker, second, &leaf, second < 3 ? SAMPLE_IDLE : 0);
	}
	threads = live_threads(live, &nr);
	cr_assert(eq(u32, nr, 2));
	cr_expect(eq(u64, threads[0].state_ns[LIVE_HOLDS_GIL], 4 * SECOND_NS));
	cr_expect(eq(u64, threads[0].gc_ns, NS_PER_S));
	cr_expect(eq(u64, threads[1].state_ns[LIVE_WAITS], 2 * SECOND_NS));
	cr_expect(eq(u64, threads[1].state_ns[LIVE_RUNS], 2 * SECOND_NS));
	cr_expect(eq(u64, own_s(live, "leaf", LIVE_ALL), 2), "time in which it waits is hidden");
	live_summarize(live, &summary);
	cr_expect(eq(u32, summary.nr_threads, 2));
	cr_expect(zero(u32, summary.nr_idle));
	cr_expect(zero(dbl, summary.gil_wait_share));
	/* Another thread gets the slot. The samples of the former one leave without it. */
	push(live, &later, 6, &leaf, SAMPLE_WAITS_FOR_GIL);
	live_advance(live, 8 * SECOND_NS);
	threads = live_threads(live, &nr);
	cr_expect(eq(str, (char *)threads[1].thread.name, (char *)"later"));
	cr_expect(eq(u64, threads[1].state_ns[LIVE_WAITS_FOR_GIL], NS_PER_S));
	cr_expect(eq(u64, threads[1].state_ns[LIVE_RUNS], 0));
	live_summarize(live, &summary);
	cr_expect(ieee_ulp_eq(dbl, summary.gil_wait_share,
			      live_share(NS_PER_S, live_recent_ns(live)), 4));
	push(live, &later, 8, &leaf, SAMPLE_IDLE);
	live_summarize(live, &summary);
	cr_expect(eq(u32, summary.nr_idle, 1));
	live_advance(live, 100 * SECOND_NS);
	live_summarize(live, &summary);
	cr_expect(eq(u32, summary.nr_threads, 0));
	live_destroy(live);
}

Test(live, reset_forgets)
{
	struct live *live = new_live(PROFILE_BUSY);
	const struct process_info info = {.pid = 7, .name = "app.py"};
	uint32_t nr;

	cr_assert(eq(int, live_set_process(live, 2, &info), 0));
	push(live, &main_thread, 1, &fib, SAMPLE_IDLE);
	cr_assert(eq(int, live_reset(live, PROFILE_WALL), 0));
	(void)live_threads(live, &nr);
	cr_expect(eq(u32, nr, 0));
	cr_expect(eq(u64, live_recent_ns(live), 0));
	push(live, &main_thread, 2, &fib, SAMPLE_IDLE);
	cr_expect(eq(u64, own_s(live, "fib", LIVE_ALL), 1));
	cr_expect(eq(int, live_process(live, 2)->pid, 7));
	cr_expect(live_process(live, 1) == NULL);
	live_destroy(live);
}

Test(live, rows_are_functions_or_lines)
{
	struct live *live = new_live(PROFILE_WALL);
	struct live_figures figures;

	push(live, &main_thread, 1, &fib, 0);
	push(live, &main_thread, 2, &fib_later, 0);
	push(live, &main_thread, 3, &fib_later, 0);
	cr_assert(eq(int, live_figures_init(&figures, live_profile(live), true), 0));
	cr_assert(eq(u32, figures.nr_rows, 3));
	live_figures_sort(&figures, LIVE_RECENT, LIVE_BY_OWN);
	cr_expect(eq(i32, figures.rows[0].line, 22));
	cr_expect(eq(i32, figures.rows[1].line, 21));
	live_figures_sort(&figures, LIVE_RECENT, LIVE_BY_TOTAL);
	cr_expect(eq(i32, figures.rows[0].line, 11));
	live_figures_filter(&figures, "FI");
	cr_expect(eq(u32, figures.nr_rows, 2));
	live_figures_done(&figures);
	live_destroy(live);
}

/* A recursive function counts once for each stack, and below itself in the tree. */
static void check_detail(bool by_line)
{
	const struct frame frames[] = {{.function = &functions[0], .line = 11},
				       {.function = &functions[1], .line = 21},
				       {.function = &functions[1], .line = 22},
				       {.function = &functions[2], .line = 31}};
	const struct sample sample = {.time_ns = NS_PER_S,
				      .wall_ns = NS_PER_S,
				      .thread = &main_thread,
				      .frames = frames,
				      .nr_frames = NR(frames)};
	struct live *live = new_live(PROFILE_WALL);
	struct live_figures figures;
	struct live_detail detail;

	cr_assert(eq(int, live_sink(live)->ops->sample(live_sink(live), &sample), 0));
	push(live, &main_thread, 2, &fib, 0);
	cr_assert(eq(int, live_figures_init(&figures, live_profile(live), by_line), 0));
	live_figures_filter(&figures, "fib");
	if (!by_line)
		cr_expect(eq(u64, figures.rows[0].weights[LIVE_ALL].total_ns, 2 * SECOND_NS));
	cr_assert(eq(int, live_detail_init(&detail, &figures, &figures.rows[0], LIVE_ALL), 0));
	cr_assert(eq(u32, detail.nr_callers, 2));
	cr_expect(eq(u64, detail.callers[0].total_ns, 2 * SECOND_NS), "main");
	cr_expect(eq(u64, detail.callers[1].total_ns, 1 * SECOND_NS), "itself");
	cr_assert(eq(u32, detail.nr_tree, 3));
	cr_expect(eq(u64, detail.tree[0].total_ns, 2 * SECOND_NS));
	cr_expect(eq(u64, detail.tree[0].own_ns, 1 * SECOND_NS));
	cr_expect(eq(u32, detail.tree[1].depth, 1));
	cr_expect(eq(u32, detail.tree[2].depth, 2));
	cr_expect(eq(u64, detail.tree[2].own_ns, 1 * SECOND_NS));
	cr_assert(eq(u32, detail.nr_lines, 2));
	cr_expect(eq(i32, detail.lines[0].line, 21));
	cr_expect(eq(u64, detail.lines[0].weight.total_ns, 2 * SECOND_NS));
	cr_expect(eq(u64, detail.lines[1].weight.total_ns, 1 * SECOND_NS));
	live_detail_done(&detail);
	live_figures_done(&figures);
	live_destroy(live);
}

Test(live, detail_has_callers_tree_and_lines)
{
	check_detail(false);
	check_detail(true);
}

/* Deep recursion is cut off, and no time is lost. */
Test(live, deep_trees_are_cut_off)
{
	enum { DEPTH = 1000 };
	static struct frame frames[DEPTH];
	const struct sample sample = {.time_ns = NS_PER_S,
				      .wall_ns = NS_PER_S,
				      .thread = &main_thread,
				      .frames = frames,
				      .nr_frames = DEPTH};
	struct live *live = new_live(PROFILE_WALL);
	struct live_figures figures;
	struct live_detail detail;

	for (int i = 0; i < DEPTH; i++)
		frames[i] = fib;
	cr_assert(eq(int, live_sink(live)->ops->sample(live_sink(live), &sample), 0));
	cr_assert(eq(int, live_figures_init(&figures, live_profile(live), false), 0));
	cr_assert(eq(int, live_detail_init(&detail, &figures, &figures.rows[0], LIVE_ALL), 0));
	cr_assert(eq(u32, detail.nr_tree, LIVE_MAX_DEPTH + 1));
	cr_expect(eq(u64, detail.tree[LIVE_MAX_DEPTH].own_ns, NS_PER_S));
	live_detail_done(&detail);
	live_figures_done(&figures);
	live_destroy(live);
}
