/* SPDX-License-Identifier: MIT */
#include "symbols/elf/vdso_image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"

bool mapping_is_vdso(const struct mapping *mapping)
{
	return !mapping->inode && strcmp(mapping->path, "[vdso]") == 0;
}

int vdso_image_open(struct remote_memory *memory, const struct mapping *mapping,
		    struct image **ret_image)
{
	size_t size = mapping->end - mapping->start;
	cleanup_close int fd = memfd_create("vdso", MFD_CLOEXEC);
	cleanup_free void *bytes = size > VDSO_IMAGE_MAX_BYTES ? NULL : malloc(size);

	if (fd < 0 || !bytes || remote_memory_read(memory, mapping->start, bytes, size) ||
	    write(fd, bytes, size) != (ssize_t)size)
		return -ENOENT;
	return image_open_fd(take_fd(fd), ret_image);
}
