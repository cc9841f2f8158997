/* SPDX-License-Identifier: MIT */
/* The vDSO, the kernel's own module, which has no file: it is whole in the memory of a target. */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image.h"

/* The vDSO has two or four pages; what is longer is none. */
#define VDSO_IMAGE_MAX_BYTES (64u << 10)

/* Whether a mapping is the vDSO. */
bool vdso_image_is(const struct mapping *mapping);

/*
 * Open a copy of it, out of memory. 0; -ENOENT (it cannot be read, or it is too long), or an error
 * of image_open_fd(). image_close() it.
 */
int vdso_image_open(struct remote_memory *memory, const struct mapping *mapping,
		    struct image **ret_image);
