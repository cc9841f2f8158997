/* SPDX-License-Identifier: MIT */
#include "sampler/python/frames.h"

#include <errno.h>

#include "sampler/python/circle.h"
#include "sampler/python/executable.h"
#include "sampler/python/frame_walk.h"

/* Append a frame of the data stack, a link's, or a shim's that turns out to be one. */
static int exact_frame(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	bool is_shim = words->owner >= walk->build->traits.shim_owner;
	int err = is_shim ? -ENOENT : walk_frame(walk, addr, words);

	if (err == -ENOENT)
		err = walk_link(walk, addr, words);
	return is_shim && err == -ENOENT ? 0 : err;
}

int walk_exact_step(struct frame_walk *walk, remote_addr addr, struct frame_words *words)
{
	int err = 0;

	/* A generator that is suspended by now hangs on nobody. */
	if (walk->build->traits.frames_on_heap && !words->previous &&
	    words->state != walk->build->traits.executing)
		return -EAGAIN;
	if (walk->build->traits.frames_on_heap)
		err = words->executable ? walk_frame(walk, addr, words) : 0;
	else if (!executable_is_nothing(walk->codes, words->executable))
		err = exact_frame(walk, addr, words);
	if (err == -EBADMSG && walk->loss == LOSS_TOO_DEEP)
		return -E2BIG;
	return err == -ENOENT ? -EBADMSG : err;
}

int frames_walk_exact(struct code_cache *codes, const struct code_clock *clock,
		      remote_addr current_frame_addr, remote_addr base_frame_addr,
		      struct frame_list *list)
{
	struct frame_walk walk = {
		.build = codes->build,
		.codes = codes,
		.clock = clock,
		.list = list,
	};
	remote_addr addr = current_frame_addr;
	struct circle circle = {0};
	uint8_t bytes[FRAME_MAX_BYTES];
	bool unusable = codes->next_version_unusable;
	int err = 0;

	list->nr_known = 0;
	list->walked.tick = 0;
	frame_list_begin(list);
	/* A shim stands at most behind each frame. */
	while (addr && addr != base_frame_addr) {
		if (circle_closes(&circle, addr) || circle.nr > 2ull * MAX_FRAMES + 1) {
			err = -E2BIG;
			break;
		}
		err = remote_memory_read(codes->memory, addr, bytes,
					 frame_head_bytes(&codes->build->offsets));
		if (err)
			break;
		struct frame_words words = frame_words(&codes->build->offsets, bytes);

		err = walk_exact_step(&walk, addr, &words);
		if (err)
			break;
		addr = words.previous;
	}
	/* What the counter proved before it was found wrong may have been read anew since. */
	if (unusable != codes->next_version_unusable) {
		list->nr_frames = 0;
		return -EAGAIN;
	}
	frame_list_reverse(list);
	/* A stack that 3.15 has a bottom for must end there. */
	if (!err && base_frame_addr && current_frame_addr && !addr)
		err = -EAGAIN;
	return err;
}
