/* SPDX-License-Identifier: MIT */
#include "sampler/waiting_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/sched/task.h"
#include "procmem/sched/task_runs.h"

/* Flags that describe the time of a sample, which the next one does not share. */
enum { FLAGS_OF_TIME = SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU };

/* Spread the expiry of samples that were taken in one tick over this many times. */
enum { NR_AGES = 64 };

void waiting_sample_done(struct waiting_sample *kept)
{
	if (kept->has_runs)
		(void)close(kept->runs_fd);
	free(kept->frames);
	free(kept->details);
	*kept = (struct waiting_sample){.nr_runs = 0};
}

int waiting_sample_keep(struct waiting_sample *kept, uint64_t nr_runs, const struct sample *sample)
{
	const uint32_t nr = sample->nr_frames;
	struct frame *frames;
	struct frame_detail *details;

	kept->nr_runs = 0;
	if (!nr || nr > WAITING_SAMPLE_MAX_FRAMES)
		return 0;
	frames = array_reserve(kept->frames, nr, &kept->max_frames, sizeof(*frames));
	kept->frames = frames ? frames : kept->frames;
	details = array_reserve(kept->details, nr, &kept->max_details, sizeof(*details));
	kept->details = details ? details : kept->details;
	if (!frames || !details)
		return -ENOMEM;
	memcpy(frames, sample->frames, nr * sizeof(*frames));
	memcpy(details, sample->details, nr * sizeof(*details));
	kept->nr_frames = nr;
	kept->flags = sample->flags & ~(uint32_t)FLAGS_OF_TIME;
	kept->nr_runs = nr_runs;
	kept->until_ns = sample->time_ns + WAITING_SAMPLE_MAX_AGE_NS -
			 (uint64_t)WAITING_SAMPLE_MAX_AGE_NS / 2 / NR_AGES *
				 (sample->thread->slot % NR_AGES);
	return 0;
}

uint64_t waiting_sample_read_runs(struct waiting_sample *kept, const struct process *process,
				  pid_t tid)
{
	uint64_t nr_runs;

	if (kept->nr_runs && !kept->has_runs) {
		kept->runs_fd = task_runs_open_count(process, tid);
		kept->has_runs = kept->runs_fd >= 0;
	}
	if (!kept->nr_runs || !kept->has_runs)
		return task_read_runs(process, tid);
	return task_runs_read_count(kept->runs_fd, &nr_runs) ? 0 : nr_runs;
}

bool waiting_sample_at(const struct waiting_sample *kept, uint64_t nr_runs, uint64_t time_ns,
		       struct sample *ret_sample)
{
	if (!kept->nr_runs || kept->nr_runs != nr_runs || time_ns >= kept->until_ns)
		return false;
	*ret_sample = (struct sample){
		.time_ns = time_ns,
		.frames = kept->frames,
		.details = kept->details,
		.nr_frames = kept->nr_frames,
		.flags = kept->flags,
	};
	return true;
}
