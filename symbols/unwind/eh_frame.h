/* SPDX-License-Identifier: MIT */
/*
 * Where the call frame information of a module is: .eh_frame as it is loaded, found through
 * the program headers; in its file .debug_frame, and the .eh_frame of programs that are
 * linked statically, of which no program header tells. Source: the Linux Standard Base 5.0,
 * "Exception Frames", §10.6.2 for .eh_frame_hdr.
 */
#pragma once

#include "symbols/elf/image.h"
#include "symbols/elf/memory_image.h"
#include "symbols/unwind/cfi.h"

/*
 * Copy the .eh_frame of a loaded image, up to the end of its segment or of what can be read;
 * where that is more than max_bytes (or CFI_MAX_BYTES), its first ones: where it ends is not known
 * before. The bytes are the caller's, to be given to free(). 0; -ENOENT (the image has none),
 * -EBADMSG, -EFAULT (it is not there, or max_bytes is 0), -ENOMEM, -ESRCH, -EPERM.
 */
int eh_frame_copy(const struct memory_image *image, uint64_t max_bytes,
		  struct cfi_section *ret_section);

/*
 * Copy the section of that kind out of a file, likewise; one that is compressed, or has more
 * than max_bytes (or CFI_MAX_BYTES), is as if there were none. 0; -ENOENT, -ENOMEM.
 */
int cfi_copy_of_file(const struct image *image, enum cfi_kind kind, uint64_t max_bytes,
		     struct cfi_section *ret_section);
