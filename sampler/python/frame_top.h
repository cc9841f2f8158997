/* SPDX-License-Identifier: MIT */
/*
 * What runs on top of the frames of the data stack, and lies elsewhere: a generator, in its
 * heap object, or a frame that an extension has linked. Its copy is a link (link_copy.h), and
 * was taken a little before or behind those of the chunks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/frames.h"

/*
 * Put the generator, or frame of an extension, that runs on top of one of the list's frames from
 * the nr_least-th on there, with what lies in between, and drop those above; the deepest if one
 * runs on another. 0 and whether there was one; -EAGAIN: the link walk->wanted_link_addr has to be
 * copied first; -EBADMSG as walk_lost(); -ENOMEM, -ESRCH, -EPERM.
 */
int frame_top_walk(struct frame_walk *walk, uint32_t nr_least, bool *ret_found);

/* Whether the current frame lies where nothing was copied: a generator not known yet. */
bool frame_top_unknown(const struct frame_walk *walk);
