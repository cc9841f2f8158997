/* SPDX-License-Identifier: MIT */
/*
 * Finds the call frame information of a module: the loaded .eh_frame through the program headers;
 * in the module's file .debug_frame, and the .eh_frame of statically linked programs, which no
 * program header describes. Source: the Linux Standard Base 5.0, "Exception Frames", §10.6.2 for
 * .eh_frame_hdr.
 */
#pragma once

#include "symbols/elf/image.h"
#include "symbols/elf/memory_image.h"
#include "symbols/unwind/cfi.h"

/*
 * Copy the .eh_frame of a loaded image, up to the end of its segment or of the readable memory,
 * since its size is unknown in advance. At most max_bytes (and at most CFI_MAX_BYTES) are copied.
 * The caller owns the bytes; release them with free().
 *
 * Returns 0; -ENOENT if the image has no .eh_frame; -EBADMSG; -EFAULT if it is not in memory or
 * max_bytes is 0; -ENOMEM, -ESRCH, -EPERM.
 */
int eh_frame_copy(const struct memory_image *image, uint64_t max_bytes,
		  struct cfi_section *ret_section);

/*
 * Copy the section of the given kind from a file. A section that is compressed, or larger than
 * max_bytes (or CFI_MAX_BYTES), counts as missing. The caller owns the bytes.
 *
 * Returns 0, -ENOENT, -ENOMEM.
 */
int cfi_copy_of_file(const struct image *image, enum cfi_kind kind, uint64_t max_bytes,
		     struct cfi_section *ret_section);
