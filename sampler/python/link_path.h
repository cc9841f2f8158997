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
 * Follow the links from a frame whose `previous` is addr, the generator top or, if that
 * is NULL, a data-stack frame, to a frame of the list or the bottom. 0; -ENOENT if they
 * do not lead there, or it cannot be told that they did when the chunks were copied
 * (walk->trimmed is set then); -EAGAIN if walk->wanted_link_addr must be copied first;
 * -EBADMSG as walk_lost().
 *
 * above_addr is the data-stack frame that the path is of, or 0: that is what extensions'
 * frames are copied with from now on.
 *
 * That the links end at a lower frame than the topmost means that what lies
 * between is dying: its locals are being destroyed, a __del__ runs above it. A frame
 * that an extension has linked is part of the path if it was the same before and after
 * everything else was copied, and so was the data-stack frame below it. The
 * bottom is below everything only if the shim of the first frame says so: the
 * `previous` of a generator that is suspended is NULL, too, and so may be what a
 * shim has left on the C stack.
 */
int link_path_follow(struct frame_walk *walk, struct link_copy *top, remote_addr addr,
		     remote_addr above_addr, struct link_path *ret_path);

/*
 * Whether the data-stack frame above a path, at that address and with that executable, was
 * still there when the extensions' frames of the path were copied once more. They may be
 * what was left over else. If not, walk->trimmed is set.
 */
bool link_path_called(struct frame_walk *walk, const struct link_path *path, remote_addr above_addr,
		      uint64_t executable);

/*
 * Whether a link is no generator, shim or other frame that is not shown, but was linked by
 * an extension; it is copied twice more then, and the last time behind everything else. 0 and
 * *ret_foreign; -ENOENT: it runs nothing that could be told (if it has no executable walk->trimmed is
 * set); other errors of walk_check().
 */
int link_is_foreign(struct frame_walk *walk, struct link_copy *link, bool *ret_foreign);

/*
 * Whether a frame that says it is a generator's lies in a generator, coroutine or the like,
 * and not anywhere as an extension has made it. That is read once for each link.
 */
bool link_in_generator(const struct frame_walk *walk, struct link_copy *link);

/* Append the generators of a path, and the frames of extensions. 0; errors of walk_link(). */
int link_path_append(struct frame_walk *walk, const struct link_path *path);
