/* SPDX-License-Identifier: MIT */
/* The frame that stands for the garbage collector. */
#include <errno.h>
#include <string.h>

#include "sampler/sampler_state.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * How many outermost frames are as in the previous sample, if nr_same are without the
 * collector's, which was below before ones in that and is now below those of now.
 */
static uint32_t unchanged_with(uint32_t nr_same, uint32_t before, uint32_t now)
{
	if (before == now && now != NOT_COLLECTING && nr_same >= now)
		return nr_same + 1;
	return min_u32(nr_same, min_u32(before, now));
}

int sampler_collector_add(struct sampler *sampler, struct sampled_thread *sampled,
			  struct sample *sample)
{
	uint32_t before = sampled->collector;
	uint32_t now;
	struct frame *frame;

	if (!sampler->looks.gc)
		return 0;
	now = sampled->walked.collector;
	if (now == NOT_COLLECTING && before == NOT_COLLECTING)
		return 0;
	if (now != NOT_COLLECTING && !sampler->collector) {
		sampler->collector = function_table_get(&sampler->codes.functions,
							FUNCTION_COLLECTOR, SAMPLE_GC_NAME, "", 0);
		if (!sampler->collector)
			return -ENOMEM;
	}
	sampled->collector = now;
	sample->nr_unchanged = unchanged_with(sample->nr_unchanged, before, now);
	if (now == NOT_COLLECTING)
		return 0;
	frame = &sampled->frames[now];
	memmove(frame + 1, frame, (sample->nr_frames - now) * sizeof(*frame));
	*frame = (struct frame){.function = sampler->collector};
	sample->nr_frames++;
	sample->flags |= SAMPLE_GC;
	return 0;
}

void sampler_collector_remove(struct sampled_thread *sampled, const struct sample *sample)
{
	struct frame *frame;

	if (sampled->collector == NOT_COLLECTING)
		return;
	frame = &sampled->frames[sampled->collector];
	memmove(frame, frame + 1, (sample->nr_frames - 1 - sampled->collector) * sizeof(*frame));
}
