/* SPDX-License-Identifier: MIT */
/* Samples made by hand, for tests of sinks. */
#pragma once

#include "output/profile/profile.h"

/* Pass one sample to profile's sink. nr_unchanged is not checked. */
static inline int push_sample(struct profile *profile, const struct sample_thread *thread,
			      const struct frame *frames, uint32_t nr_frames, uint32_t nr_unchanged,
			      uint64_t wall_ns)
{
	struct sample_sink *sink = profile_sink(profile);
	const struct sample sample = {
		.wall_ns = wall_ns,
		.thread = thread,
		.frames = frames,
		.nr_frames = nr_frames,
		.nr_unchanged = nr_unchanged,
	};

	return sink->ops->sample(sink, &sample);
}
