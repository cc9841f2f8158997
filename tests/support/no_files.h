/* SPDX-License-Identifier: MIT */
/* An image source that has no files. */
#pragma once

#include <errno.h>

#include "symbols/elf/image_source.h"

static inline int no_files_open(struct image_source *source, const struct mapping *mapping,
				struct image **ret_image)
{
	(void)source, (void)mapping, (void)ret_image;
	return -ENOENT;
}

static const struct image_source_ops no_files_ops = {.open = no_files_open};
