/* SPDX-License-Identifier: MIT */
/*
 * Opens the ELF files that a target has mapped: those of a running process
 * (symbols/elf/live_images.h), those that a core file names, or none in a test. All symbol
 * look-ups open files through this interface.
 */
#pragma once

#include <errno.h>

#include "procmem/maps.h"
#include "symbols/elf/image.h"

struct image_source;

struct image_source_ops {
	/*
	 * Open the file that mapping, one of the target's, maps, and never another file that has
	 * taken its path. Returns 0; -ENOENT if it cannot be reached or identified; -EPERM; or an
	 * error of image_open_fd().
	 */
	int (*open)(struct image_source *source, const struct mapping *mapping,
		    struct image **ret_image);

	/*
	 * Open the separate file with its debug information and .symtab, likewise. NULL if the
	 * source has none.
	 */
	int (*open_debug)(struct image_source *source, const struct mapping *mapping,
			  struct image **ret_image);
};

/* The first member of every kind of source. */
struct image_source {
	const struct image_source_ops *ops;
};

/* As image_source_ops.open. The caller closes the image with image_close(). */
static inline int image_source_open(struct image_source *source, const struct mapping *mapping,
				    struct image **ret_image)
{
	return source->ops->open(source, mapping, ret_image);
}

/*
 * As image_source_ops.open_debug, or -ENOENT without one. The caller closes the image with
 * image_close().
 */
static inline int image_source_open_debug(struct image_source *source,
					  const struct mapping *mapping, struct image **ret_image)
{
	return source->ops->open_debug ? source->ops->open_debug(source, mapping, ret_image)
				       : -ENOENT;
}
