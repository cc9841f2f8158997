/* SPDX-License-Identifier: MIT */
/* The vDSO, the kernel's own module. It has no file; a target's memory holds all of it. */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image.h"

/* The vDSO has two or four pages; anything longer is rejected. */
#define VDSO_IMAGE_MAX_BYTES (64u << 10)

/* Whether a mapping is the vDSO. */
bool mapping_is_vdso(const struct mapping *mapping);

/*
 * Open a copy of the vDSO from memory. The caller closes it with image_close(). Returns 0;
 * -ENOENT if it cannot be read or is too long; or an error of image_open_fd().
 */
int vdso_image_open(struct remote_memory *memory, const struct mapping *mapping,
		    struct image **ret_image);
