/* SPDX-License-Identifier: MIT */
#include "sampler/waiting_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/task.h"
#include "procmem/task_runs.h"

/* These tell of the time of a sample, which is not that of the next one. */
enum { FLAGS_OF_TIME = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU };

/* What was looked at in one tick gets old in up to so many different ones. */
enum { NR_AGES = 64 };

static void forget(struct waiting_sample *kept)
{
	if (kept->has_runs)
		(void)close(kept->runs_fd);
	free(kept->frames);
	free(kept->details);
	*kept = (struct waiting_sample){.nr_runs = 0};
}

void waiting_samples_done(struct waiting_samples *samples)
{
	for (uint32_t i = 0; i < samples->max_threads; i++)
		forget(&samples->threads[i]);
	free(samples->threads);
	*samples = (struct waiting_samples){.threads = NULL};
}

/* 0 or -ENOMEM. */
static int keep(struct waiting_samples *samples, const struct sample *sample)
{
	const struct sample_thread *thread = sample->thread;
	const uint32_t before = samples->max_threads;
	struct waiting_sample *threads = array_reserve(samples->threads, thread->slot + 1,
						       &samples->max_threads, sizeof(*threads));
	struct waiting_sample *kept;
	struct frame *frames;
	struct frame_detail *details;

	if (!threads)
		return -ENOMEM;
	memset(threads + before, 0, (samples->max_threads - before) * sizeof(*threads));
	samples->threads = threads;
	kept = &threads[thread->slot];
	if (kept->thread_id != thread->id)
		forget(kept);
	kept->nr_runs = 0;
	if (!sample->nr_frames || sample->nr_frames > WAITING_SAMPLES_MAX_FRAMES)
		return 0;
	frames = array_reserve(kept->frames, sample->nr_frames, &kept->max_frames, sizeof(*frames));
	kept->frames = frames ? frames : kept->frames;
	details = array_reserve(kept->details, sample->nr_frames, &kept->max_details,
				sizeof(*details));
	kept->details = details ? details : kept->details;
	if (!frames || !details)
		return -ENOMEM;
	memcpy(frames, sample->frames, sample->nr_frames * sizeof(*frames));
	memcpy(details, sample->details, sample->nr_frames * sizeof(*details));
	kept->nr_frames = sample->nr_frames;
	kept->flags = sample->flags & ~(uint32_t)FLAGS_OF_TIME;
	kept->thread_id = thread->id;
	kept->nr_runs = samples->nr_runs;
	kept->until_ns =
		sample->time_ns + WAITING_SAMPLES_MAX_AGE_NS -
		(uint64_t)WAITING_SAMPLES_MAX_AGE_NS / 2 / NR_AGES * (thread->slot % NR_AGES);
	return 0;
}

static int keep_and_hand_on(struct sample_sink *sink, const struct sample *sample)
{
	struct waiting_samples *samples = (struct waiting_samples *)sink;
	int err = keep(samples, sample);

	return err ? err : samples->next->ops->sample(samples->next, sample);
}

struct sample_sink *waiting_samples_keep(struct waiting_samples *samples, uint64_t nr_runs,
					 struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {.sample = keep_and_hand_on};

	samples->sink.ops = &ops;
	samples->nr_runs = nr_runs;
	samples->next = next;
	return &samples->sink;
}

/* The place of what is kept of a thread; NULL: nothing is. What was kept of another is forgotten. */
static struct waiting_sample *find(struct waiting_samples *samples,
				   const struct sample_thread *thread)
{
	struct waiting_sample *kept =
		thread->slot < samples->max_threads ? &samples->threads[thread->slot] : NULL;

	if (kept && kept->nr_runs && kept->thread_id != thread->id)
		forget(kept);
	return kept && kept->nr_runs ? kept : NULL;
}

uint64_t waiting_samples_read_runs(struct waiting_samples *samples, const struct process *process,
				   const struct sample_thread *thread)
{
	struct waiting_sample *kept = find(samples, thread);
	uint64_t nr_runs;

	if (kept && !kept->has_runs) {
		kept->runs_fd = task_runs_open_count(process, thread->tid);
		kept->has_runs = kept->runs_fd >= 0;
	}
	if (!kept || !kept->has_runs)
		return task_read_runs(process, thread->tid);
	return task_runs_read_count(kept->runs_fd, &nr_runs) ? 0 : nr_runs;
}

const struct waiting_sample *waiting_samples_find(struct waiting_samples *samples,
						  const struct sample_thread *thread,
						  uint64_t nr_runs, uint64_t now_ns)
{
	const struct waiting_sample *kept = find(samples, thread);

	return kept && kept->nr_runs == nr_runs && now_ns < kept->until_ns ? kept : NULL;
}

struct sample waiting_sample_at(const struct waiting_sample *kept, uint64_t time_ns)
{
	return (struct sample){
		.time_ns = time_ns,
		.frames = kept->frames,
		.details = kept->details,
		.nr_frames = kept->nr_frames,
		.flags = kept->flags,
	};
}
