/* SPDX-License-Identifier: MIT */
/*
 * One ELF file as it lies in a target's memory: for files that cannot be opened, or
 * that lie under their path no more (deleted and replaced, in a memfd, in a mount
 * namespace that we may not look into, under an overlay). Only what is loaded is
 * there: program headers, dynamic symbols and notes; neither section headers nor
 * .symtab. Nothing in it is trusted: every address is checked against the span of
 * the loaded segments before it is read.
 *
 * Source: the System V ABI, chapters "Program Loading" and "Dynamic Linking"; for
 * DT_GNU_HASH do_lookup_x() in elf/dl-lookup.c of glibc.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image.h"

struct memory_image {
	struct remote_memory *memory; /* borrowed from who opened it */
	uint64_t load_bias;	      /* what a vaddr needs to become an address in the target */
	remote_addr start; /* [start, end): all loaded segments, with what lies between */
	remote_addr end;
	Elf64_Phdr *segments; /* owned; as the memory has them, nothing in them was checked */
	size_t nr_segments;
};

/*
 * Open the image whose ELF header is loaded at header_addr. 0; -EBADMSG (no ELF file
 * of this machine, or its segments cannot be), -E2BIG (IMAGE_MAX_SEGMENTS), -EFAULT,
 * -ENOMEM, -ESRCH, -EPERM. memory_image_close() frees what it holds; it accepts NULL
 * and one that is zero.
 */
int memory_image_open(struct remote_memory *memory, remote_addr header_addr,
		      struct memory_image *ret_image);
void memory_image_close(struct memory_image *image);

/*
 * The address of the dynamic symbol called name, a place in the image, found by its
 * hash as the loader does it. 0; -ENOENT (also if the tables are damaged), -ESRCH, -EPERM.
 */
int memory_image_symbol(const struct memory_image *image, const char *name, remote_addr *ret_addr);

/* As image_build_id(), from the notes that are loaded. */
size_t memory_image_build_id(const struct memory_image *image,
			     uint8_t ret_build_id[BUILD_ID_MAX_BYTES]);
