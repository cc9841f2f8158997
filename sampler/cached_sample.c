/* SPDX-License-Identifier: MIT */
#include "sampler/cached_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_wait.h"

/* Flags that describe the time of a sample, which the next one does not share. */
enum { FLAGS_OF_TIME = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU };

/* Spread the expiry of samples that were taken in one tick over this many times. */
enum { NR_AGES = 64 };

void cached_sample_done(struct cached_sample *cached)
{
	if (cached->has_runs)
		(void)close(cached->runs_fd);
	free(cached->frames);
	*cached = (struct cached_sample){.nr_runs = 0};
}

int cached_sample_store(struct cached_sample *cached, uint64_t nr_runs, const struct sample *sample)
{
	const uint32_t nr = sample->nr_frames;
	struct frame *frames;

	cached->nr_runs = 0;
	if (!nr || nr > CACHED_SAMPLE_MAX_FRAMES)
		return 0;
	frames = array_reserve(cached->frames, nr, &cached->max_frames, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	cached->frames = frames;
	memcpy(frames, sample->frames, nr * sizeof(*frames));
	cached->nr_frames = nr;
	cached->flags = sample->flags & ~(uint32_t)FLAGS_OF_TIME;
	cached->nr_runs = nr_runs;
	cached->expires_ns =
		sample->time_ns + CACHED_SAMPLE_MAX_AGE_NS -
		(uint64_t)CACHED_SAMPLE_MAX_AGE_NS / 2 / NR_AGES * (sample->thread->slot % NR_AGES);
	return 0;
}

uint64_t cached_sample_read_runs(struct cached_sample *cached, const struct process *process,
				 pid_t tid)
{
	uint64_t nr_runs;

	if (cached->nr_runs && !cached->has_runs) {
		cached->runs_fd = run_count_open_fd(process, tid);
		cached->has_runs = cached->runs_fd >= 0;
	}
	if (!cached->nr_runs || !cached->has_runs)
		return run_count_read_once(process, tid);
	return run_count_read_fd(cached->runs_fd, &nr_runs) ? 0 : nr_runs;
}

bool cached_sample_get(const struct cached_sample *cached, uint64_t nr_runs, uint64_t time_ns,
		       struct sample *ret_sample)
{
	if (!cached->nr_runs || cached->nr_runs != nr_runs || time_ns >= cached->expires_ns)
		return false;
	*ret_sample = (struct sample){
		.time_ns = time_ns,
		.frames = cached->frames,
		.nr_frames = cached->nr_frames,
		.flags = cached->flags,
	};
	return true;
}
