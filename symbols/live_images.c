/* SPDX-License-Identifier: MIT */
#include "symbols/live_images.h"

#include "procmem/mapped_file.h"

static int live_images_open(struct image_source *source, const struct mapping *mapping,
			    struct image **ret_image)
{
	const struct process *process = ((const struct live_images *)source)->process;
	int fd = mapped_file_open(process, mapping);

	return fd < 0 ? fd : image_open_fd(fd, ret_image);
}

void live_images_init(struct live_images *images, const struct process *process)
{
	static const struct image_source_ops ops = {.open = live_images_open};

	*images = (struct live_images){.source.ops = &ops, .process = process};
}
