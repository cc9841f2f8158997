/* SPDX-License-Identifier: MIT */
#include "symbols/elf/debug_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/usr/lib/debug/.build-id/"

enum { HEX_MAX_BYTES = 2 * BUILD_ID_MAX_BYTES + 1 };

int debug_file_open(const struct sysroot *sysroot, const uint8_t *build_id, size_t size,
		    struct image **ret_image)
{
	char hex[HEX_MAX_BYTES];
	char path[sizeof(FOLDER) + sizeof(hex) + sizeof("/.debug")];
	uint8_t found_id[BUILD_ID_MAX_BYTES];
	struct image *image;
	int err;

	if (size < 2 || size > BUILD_ID_MAX_BYTES)
		return -ENOENT;
	for (size_t i = 0; i < size; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	(void)snprintf(path, sizeof(path), FOLDER "%.2s/%s.debug", hex, hex + 2);
	int fd = sysroot_open_file(sysroot, path);

	if (fd < 0)
		return fd;
	err = image_open_fd(fd, &image);
	if (err)
		return err;
	if (image_build_id(image, found_id) != size || memcmp(found_id, build_id, size) != 0) {
		image_close(image);
		return -ENOENT;
	}
	*ret_image = image;
	return 0;
}
