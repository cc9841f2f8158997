/* SPDX-License-Identifier: MIT */
#include "sampler/steady_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"

void steady_frames_done(struct steady_frames *steady)
{
	if (!steady)
		return;
	free(steady->frames);
	*steady = (struct steady_frames){.tid = 0};
}

static bool is_same(const struct steady_frame *steady, const struct walked_frame *frame)
{
	return steady->addr == frame->addr && steady->previous == frame->previous &&
	       steady->executable == frame->executable;
}

/* Of how many looks in a row the frame at index is now, if those around it were. */
static uint32_t nr_looks_of(const struct steady_frames *steady, uint32_t index,
			    const struct walked_frame *frame)
{
	const struct steady_frame *before = &steady->frames[index];

	if (index >= steady->nr_frames || !is_same(before, frame))
		return 1;
	return before->nr_looks < STEADY_FRAMES_LOOKS ? before->nr_looks + 1 : before->nr_looks;
}

int steady_frames_look(struct steady_frames *steady, pid_t tid, const struct frame_list *list)
{
	struct steady_frame *frames = array_reserve(steady->frames, list->nr_frames,
						    &steady->max_frames, sizeof(*frames));
	uint32_t most_looks = STEADY_FRAMES_LOOKS;

	if (!frames)
		return -ENOMEM;
	steady->frames = frames;
	if (steady->tid != tid)
		steady->nr_frames = 0;
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		const struct walked_frame *frame = &list->frames[i];
		const uint32_t nr_looks = nr_looks_of(steady, i, frame);

		most_looks = nr_looks < most_looks ? nr_looks : most_looks;
		frames[i] = (struct steady_frame){
			.addr = frame->addr,
			.previous = frame->previous,
			.executable = frame->executable,
			.nr_looks = most_looks,
		};
	}
	steady->tid = tid;
	steady->nr_frames = list->nr_frames;
	return 0;
}

bool steady_frames_has(const struct steady_frames *steady, uint32_t index)
{
	return index < steady->nr_frames && steady->frames[index].nr_looks == STEADY_FRAMES_LOOKS;
}
