/* SPDX-License-Identifier: MIT */
/*
 * One ELF file as loaded into a target's memory. It serves for files that cannot be opened or are
 * no longer at their path: deleted or replaced files, files in a memfd, in an inaccessible mount
 * namespace, or under an overlay. Only the loaded part is available: program headers, dynamic
 * symbols and notes; neither section headers nor .symtab. The memory is untrusted: every address
 * is checked against the span of the loaded segments before it is read.
 *
 * Source: the System V ABI, chapters "Program Loading" and "Dynamic Linking"; for DT_GNU_HASH
 * do_lookup_x() in elf/dl-lookup.c of glibc.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image.h"

struct memory_image {
	struct remote_memory *memory; /* borrowed from the caller of memory_image_open() */
	uint64_t load_bias;	      /* address in the target - vaddr */
	remote_addr start; /* [start, end): all loaded segments and the gaps between them */
	remote_addr end;
	Elf64_Phdr *segments; /* owned; as in memory, unchecked */
	size_t nr_segments;
};

/*
 * Open the image whose ELF header is loaded at header_addr. memory_image_close() frees what the
 * image holds; it accepts NULL and an all-zero image.
 *
 * Returns 0; -EBADMSG if it is not an ELF file of this machine or its segments are impossible;
 * -E2BIG (IMAGE_MAX_SEGMENTS); -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 */
int memory_image_open(struct remote_memory *memory, remote_addr header_addr,
		      struct memory_image *ret_image);
void memory_image_close(struct memory_image *image);

/*
 * Find the dynamic symbol called name by its hash, as the loader does, and return its address,
 * which lies in the image. Returns 0; -ENOENT, also if the tables are damaged or not mapped;
 * -ENOMEM, -ESRCH, -EPERM; or another error of the memory, such as -E2BIG of a bounded one.
 */
int memory_image_symbol(const struct memory_image *image, const char *name, remote_addr *ret_addr);

/* As image_build_id(), from the loaded notes. */
size_t memory_image_build_id(const struct memory_image *image,
			     uint8_t ret_build_id[BUILD_ID_MAX_BYTES]);
