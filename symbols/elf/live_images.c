/* SPDX-License-Identifier: MIT */
#include "symbols/elf/live_images.h"

#include <stdio.h>

#include "procmem/live.h"
#include "procmem/mapped_file.h"
#include "procmem/sysroot.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf/vdso_image.h"

/* Room for "/proc/self/fd/", a number, "/root". */
enum { ROOT_PATH_MAX_BYTES = 48 };

static int open_vdso(const struct process *process, const struct mapping *mapping,
		     struct image **ret_image)
{
	struct live_memory live;

	live_memory_init(&live, process);
	return vdso_image_open(&live.memory, mapping, ret_image);
}

static int live_images_open(struct image_source *source, const struct mapping *mapping,
			    struct image **ret_image)
{
	const struct process *process = ((const struct live_images *)source)->process;

	if (mapping_is_vdso(mapping))
		return open_vdso(process, mapping, ret_image);

	int fd = mapped_file_open(process, mapping);

	return fd < 0 ? fd : image_open_fd(fd, ret_image);
}

/* Open the debug file in the root of the process, which may be a container's. */
static int open_debug_of_process(const struct process *process, const uint8_t *build_id,
				 size_t size, struct image **ret_image)
{
	char path[ROOT_PATH_MAX_BYTES];
	struct sysroot root;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/root", process->proc_fd);
	err = sysroot_open(path, &root, NULL);
	if (err)
		return err;
	err = debug_file_open(&root, build_id, size, ret_image);
	sysroot_close(&root);
	return err;
}

static int live_images_open_debug(struct image_source *source, const struct mapping *mapping,
				  struct image **ret_image)
{
	const struct process *process = ((const struct live_images *)source)->process;
	const struct sysroot own = SYSROOT_OWN;
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	struct image *image;
	size_t size;
	int err = live_images_open(source, mapping, &image);

	if (err)
		return err;
	size = image_build_id(image, build_id);
	image_close(image);
	err = open_debug_of_process(process, build_id, size, ret_image);
	return err ? debug_file_open(&own, build_id, size, ret_image) : 0;
}

void live_images_init(struct live_images *images, const struct process *process)
{
	static const struct image_source_ops ops = {
		.open = live_images_open,
		.open_debug = live_images_open_debug,
	};

	*images = (struct live_images){.source.ops = &ops, .process = process};
}
