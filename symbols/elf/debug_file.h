/* SPDX-License-Identifier: MIT */
/*
 * The files that distributions put the symbols of stripped programs into, by build ID:
 * /usr/lib/debug/.build-id/xx/yyyy.debug.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/sysroot.h"
#include "symbols/elf/image.h"

/*
 * Open the debug file of that build ID in the root; it says itself that it has that. 0;
 * -ENOENT (none, or it is of another build), -EPERM, or an error of image_open_fd().
 * image_close() it.
 */
int debug_file_open(const struct sysroot *sysroot, const uint8_t *build_id, size_t size,
		    struct image **ret_image);
