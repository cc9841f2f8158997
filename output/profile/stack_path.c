/* SPDX-License-Identifier: MIT */
#include "output/profile/stack_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_FRAMES 64

void stack_path_done(struct stack_path *path)
{
	free(path->frames);
	*path = (struct stack_path){0};
}

/* Add room before the frames, which are at the end. */
static int stack_path_grow(struct stack_path *path)
{
	size_t max = path->max ? path->max * 2 : MIN_FRAMES;
	uint32_t *frames = reallocarray(path->frames, max, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	memmove(frames + max - path->max, frames, path->max * sizeof(*frames));
	path->start += max - path->max;
	path->frames = frames;
	path->max = max;
	return 0;
}

/* Parent links lead outwards, so the path is filled from its end. */
int stack_path_read(struct stack_path *path, const struct profile *profile, uint32_t node)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	path->start = path->max;
	for (; node != PROFILE_NONE; node = nodes[node].parent) {
		if (path->start == 0) {
			int err = stack_path_grow(path);

			if (err)
				return err;
		}
		path->frames[--path->start] = nodes[node].frame;
	}
	return 0;
}
