/* SPDX-License-Identifier: MIT */
/*
 * Where the ELF files come from that a target has mapped: those of a running process
 * (symbols/elf/live_images.h), those that a core file names, none in a test. Whoever looks for
 * symbols asks through this and nothing else.
 */
#pragma once

#include <errno.h>

#include "procmem/maps.h"
#include "symbols/elf/image.h"

struct image_source;

struct image_source_ops {
	/*
	 * Open the file that mapping maps, which is one of the target's, and no other file,
	 * whatever lies under its path by now. 0; -ENOENT (no way to it, or it cannot be told
	 * that it is the file), -EPERM, or an error of image_open_fd().
	 */
	int (*open)(struct image_source *source, const struct mapping *mapping,
		    struct image **ret_image);

	/*
	 * Open the file that debug information and .symtab of it were split off into, likewise.
	 * NULL: there are none to be had.
	 */
	int (*open_debug)(struct image_source *source, const struct mapping *mapping,
			  struct image **ret_image);
};

/* The first member of every kind of source. */
struct image_source {
	const struct image_source_ops *ops;
};

/* As image_source_ops.open says; image_close() what was opened. */
static inline int image_source_open(struct image_source *source, const struct mapping *mapping,
				    struct image **ret_image)
{
	return source->ops->open(source, mapping, ret_image);
}

/* As image_source_ops.open_debug says, likewise. */
static inline int image_source_open_debug(struct image_source *source,
					  const struct mapping *mapping, struct image **ret_image)
{
	return source->ops->open_debug ? source->ops->open_debug(source, mapping, ret_image)
				       : -ENOENT;
}
