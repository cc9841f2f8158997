/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/recording/recorder.h"
#include "output/recording/replay.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"

/*
 * The limit on known nodes of threads is 2^20 plus twice the profile's maximum. ENOUGH_THREADS
 * stacks of DEPTH frames exceed it.
 */
enum { MAX_NODES = 1024, KEPT = (1 << 20) + 2 * MAX_NODES, DEPTH = 4096 };
enum { ENOUGH_THREADS = KEPT / DEPTH + 1 };

static const struct function deep = {0, 1, "deep", "app.py", FUNCTION_PYTHON};

/* Push a stack of nr_frames, all on this line. */
static void push(struct recorder *recorder, uint32_t thread, uint32_t nr_frames, int32_t line)
{
	struct sample_sink *sink = recorder_sink(recorder);
	cleanup_free struct frame *frames = calloc(nr_frames, sizeof(*frames));
	const struct sample_thread who = {.id = thread, .slot = thread, .tid = 1 + (pid_t)thread};
	const struct sample sample = {
		.time_ns = NS_PER_S, .thread = &who, .frames = frames, .nr_frames = nr_frames};

	cr_assert(frames != NULL);
	for (uint32_t i = 0; i < nr_frames; i++)
		frames[i] = (struct frame){&deep, line};
	cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
}

/*
 * A recording in which each thread first has a stack of one frame, then all but the first thread
 * have deep ones. At the end the first thread has its stack again, and then one on another line:
 * a new node in the recording, but the same one in a profile by function.
 */
static struct recording *record(uint32_t nr_threads)
{
	const struct run run = {.info = {.target.pid = 7, .mode = PROFILE_WALL}};
	int fd = memfd_create("recording", MFD_CLOEXEC); /* open until the test ends */
	struct recorder *recorder;
	struct recording *recording;

	cr_assert(fd >= 0);
	cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
	for (uint32_t i = 0; i <= nr_threads; i++)
		push(recorder, i, 1, 1);
	for (uint32_t i = 1; i <= nr_threads; i++)
		push(recorder, i, DEPTH, 1);
	push(recorder, 0, 1, 1);
	push(recorder, 0, 1, 2);
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	cr_assert(eq(int, recording_open(fd, &recording, NULL), 0));
	return recording;
}

/* Beyond the limit, new nodes are counted as other stacks; known ones keep their place. */
Test(replay_memory, kept_nodes_are_limited_to_twice_a_profile)
{
	static const struct {
		uint32_t nr_threads, nr_other;
	} cases[] = {{ENOUGH_THREADS - 1, ENOUGH_THREADS - 1},
		     {ENOUGH_THREADS, ENOUGH_THREADS + 1}};
	const struct profile_options options = {.by_thread = true, .max_nodes = MAX_NODES};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t nr_threads = cases[i].nr_threads;
		struct profile *profile = profile_create(&options);
		struct recording *recording = record(nr_threads);
		const struct profile_sums *sums = profile_sums(profile, PROFILE_SHOWN);

		cr_assert(eq(int,
			     replay(recording, &(struct replay_filter){0}, profile, PROFILE_SHOWN),
			     0));
		cr_expect(eq(u64, sums->account.nr_shown, 2 * nr_threads + 3));
		cr_expect(eq(u64, sums->nr_other_samples, cases[i].nr_other), "case %zu", i);
		recording_close(recording);
		profile_destroy(profile);
	}
}
