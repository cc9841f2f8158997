/* SPDX-License-Identifier: MIT */
#include "sampler/cached_sample.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

enum { NR_FRAMES = 3, NOW_NS = 5000 };

struct stage {
	struct process process;
	struct pipe_waiter waiter;
	struct wait_place place;
	struct sample_thread id;
	struct function functions[NR_FRAMES];
	struct frame frames[NR_FRAMES];
	struct cached_sample cached;
};

static void stage_init(struct stage *stage)
{
	*stage = (struct stage){.id.id = 0};
	stage->process = own_process_open();
	pipe_waiter_begin(&stage->waiter);
	stage->place = pipe_waiter_place(&stage->waiter, &stage->process);
	if (!stage->place.nr_runs)
		cr_skip("this kernel does not count the runs of a thread");
	stage->id = (struct sample_thread){.id = 7, .slot = 4, .tid = stage->waiter.tid};
	for (int i = 0; i < NR_FRAMES; i++)
		stage->frames[i] = (struct frame){&stage->functions[i], i};
}

static void stage_done(struct stage *stage)
{
	cached_sample_done(&stage->cached);
	pipe_waiter_end(&stage->waiter);
	process_close(&stage->process);
}

/* Keep a sample of nr_frames frames. */
static int keep(struct stage *stage, uint32_t nr_frames)
{
	const struct sample sample = {
		.time_ns = NOW_NS,
		.wall_ns = 10,
		.cpu_ns = 3,
		.thread = &stage->id,
		.frames = stage->frames,
		.nr_frames = nr_frames,
		.flags = SAMPLE_EXCEPTION | SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU,
	};

	return cached_sample_store(&stage->cached, stage->place.nr_runs, &sample);
}

static bool find(const struct stage *stage, uint64_t now_ns, struct sample *ret_sample)
{
	return cached_sample_get(&stage->cached,
				 run_count_read_once(&stage->process, stage->waiter.tid), now_ns,
				 ret_sample);
}

static bool has(const struct stage *stage, uint64_t now_ns)
{
	struct sample sample;

	return find(stage, now_ns, &sample);
}

Test(cached_sample, waiting_thread_keeps_its_sample, .timeout = 60)
{
	struct sample again;
	struct stage stage;

	stage_init(&stage);
	cr_expect(not(has(&stage, NOW_NS)));
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	cr_assert(find(&stage, NOW_NS + 1, &again));
	cr_expect(eq(u64, again.time_ns, NOW_NS + 1));
	cr_expect(eq(u32, again.flags, SAMPLE_EXCEPTION));
	cr_expect(eq(u64, again.cpu_ns, 0));
	cr_assert(eq(u32, again.nr_frames, NR_FRAMES));
	cr_expect(not(again.frames == stage.frames));
	cr_expect(zero(int, memcmp(again.frames, stage.frames, sizeof(stage.frames))));
	cr_expect(again.details == NULL);
	/* The thread runs, then waits in the same call with the same arguments. */
	(void)pipe_waiter_continue(&stage.waiter, &stage.process);
	cr_expect(not(has(&stage, NOW_NS + 2)));
	stage_done(&stage);
}

/* While a sample is cached, the thread's file stays open and gives the same count. */
Test(cached_sample, run_count_agrees_with_the_kernel, .timeout = 60)
{
	struct stage stage;
	uint64_t nr_runs;

	stage_init(&stage);
	nr_runs = cached_sample_read_runs(&stage.cached, &stage.process, stage.waiter.tid);
	cr_expect(eq(u64, nr_runs, stage.place.nr_runs));
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	for (int i = 0; i < 3; i++) {
		nr_runs = cached_sample_read_runs(&stage.cached, &stage.process, stage.waiter.tid);
		cr_expect(eq(u64, nr_runs, run_count_read_once(&stage.process, stage.waiter.tid)));
		cr_expect(stage.cached.has_runs);
		(void)pipe_waiter_continue(&stage.waiter, &stage.process);
	}
	/* A new thread in the slot has no cached sample, and its own file is read. */
	cached_sample_done(&stage.cached);
	nr_runs = cached_sample_read_runs(&stage.cached, &stage.process, stage.waiter.tid);
	cr_expect(lt(u64, 0, nr_runs));
	cr_expect(not(stage.cached.has_runs));
	stage_done(&stage);
}

Test(cached_sample, kept_sample_expires, .timeout = 60)
{
	struct stage stage;

	stage_init(&stage);
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	cr_expect(has(&stage, NOW_NS + CACHED_SAMPLE_MAX_AGE_NS / 2));
	cr_expect(not(has(&stage, NOW_NS + (uint64_t)CACHED_SAMPLE_MAX_AGE_NS)));
	stage_done(&stage);
}

Test(cached_sample, new_thread_in_the_slot_has_none, .timeout = 60)
{
	struct stage stage;

	stage_init(&stage);
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	cr_expect(has(&stage, NOW_NS));
	/* The memory of the cached sample is freed. */
	cached_sample_done(&stage.cached);
	cr_expect(not(has(&stage, NOW_NS)));
	cr_expect(stage.cached.frames == NULL);
	stage_done(&stage);
}

Test(cached_sample, deep_or_uncounted_samples_are_not_kept, .timeout = 60)
{
	static struct frame frames[CACHED_SAMPLE_MAX_FRAMES + 1];
	struct sample sample = {.frames = frames};
	struct stage stage;

	stage_init(&stage);
	/* A stack that is too deep replaces the cached sample by none. */
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	sample.thread = &stage.id;
	sample.nr_frames = CACHED_SAMPLE_MAX_FRAMES + 1;
	cr_assert(zero(int, cached_sample_store(&stage.cached, stage.place.nr_runs, &sample)));
	cr_expect(not(has(&stage, NOW_NS)));
	sample.nr_frames--;
	cr_assert(zero(int, cached_sample_store(&stage.cached, stage.place.nr_runs, &sample)));
	cr_expect(has(&stage, 0));
	/* Without a run count two waits cannot be distinguished. */
	stage.place.nr_runs = 0;
	cr_assert(zero(int, keep(&stage, NR_FRAMES)));
	cr_expect(not(has(&stage, NOW_NS)));
	stage_done(&stage);
}
