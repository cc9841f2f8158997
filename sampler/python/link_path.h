/* SPDX-License-Identifier: MIT */
/*
 * How a frame hangs on the data-stack frames below it by links: generators, and the
 * entry shims between C and Python. Links are copied a little before and after the
 * chunks, so all of this is about what they were at the chunks' moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/frames.h"

/* More generators and shims between two data-stack frames are taken for damage. */
#define PATH_MAX_LINKS 256

/* More frames than this cannot be dying at once: each has run a __del__ into the next. */
#define MAX_DYING_FRAMES 256

/* How a frame hangs on the frames walked so far. */
struct link_path {
	struct link_copy *links[PATH_MAX_LINKS]; /* from the frame down; borrowed */
	uint32_t nr_links;
	uint32_t nr_below; /* frames of the list that lie below; the others are dying */
};

/*
 * Follow the links from a frame whose `previous` is addr to a frame of the list
 * or the bottom. 0; -ENOENT if they do not lead there, or did not when the chunks
 * were copied, so far as can be told; -EAGAIN if walk->wanted_link_addr must be
 * copied first; -EBADMSG as walk_lost().
 *
 * That the links end at a lower frame than the topmost means that what lies
 * between is dying: its locals are being destroyed, a __del__ runs above it. The
 * bottom is below everything only if the shim of the first frame says so: the
 * `previous` of a generator that is suspended is NULL, too, and so may be what a
 * shim has left on the C stack.
 */
int link_path_follow(struct frame_walk *walk, remote_addr addr, struct link_path *ret_path);

/*
 * Whether a generator was the same one before and after the chunks were copied; else
 * sets walk->trimmed.
 */
bool link_stable(struct frame_walk *walk, const struct link_copy *link);

/*
 * Whether the outermost generator of path, or link where it has none (NULL: there is
 * none at all), was run by the frame of the list below when the chunks were copied. If
 * not, or if it cannot be told, walk->trimmed is set.
 */
bool link_path_holds(struct frame_walk *walk, struct link_copy *link, const struct link_path *path);
