/* SPDX-License-Identifier: MIT */
/*
 * Where the call frame information of a module is: .eh_frame as it is loaded, found through
 * the program headers, and .debug_frame of its file. Source: the Linux Standard Base 5.0,
 * "Exception Frames", §10.6.2 for .eh_frame_hdr.
 */
#pragma once

#include "symbols/cfi.h"
#include "symbols/image.h"
#include "symbols/memory_image.h"

/*
 * Copy the .eh_frame of a loaded image, up to the end of its segment or of what can be read.
 * The bytes are the caller's, to be given to free(). 0; -ENOENT (the image has none),
 * -EBADMSG, -EFAULT (it is not there), -ENOMEM, -ESRCH, -EPERM.
 */
int eh_frame_copy(const struct memory_image *image, struct cfi_section *ret_section);

/*
 * Copy the .debug_frame of a file, likewise; one that is compressed is as if there were none.
 * 0; -ENOENT, -ENOMEM.
 */
int debug_frame_copy(const struct image *image, struct cfi_section *ret_section);
