/* SPDX-License-Identifier: MIT */
/*
 * Opens the files in which distributions ship the symbols of stripped programs, by build ID:
 * /usr/lib/debug/.build-id/xx/yyyy.debug.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/sysroot.h"
#include "symbols/elf/image.h"

/*
 * Open the debug file with the given build ID below the root. The file itself must carry that
 * build ID. The caller closes it with image_close().
 *
 * Returns 0; -ENOENT if there is none, or it is of another build; -EPERM; or an error of
 * image_open_fd().
 */
int debug_file_open(const struct sysroot *sysroot, const uint8_t *build_id, size_t size,
		    struct image **ret_image);
