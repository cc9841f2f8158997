/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process, read from its core file. Bytes that were saved come from the core. Bytes
 * that were never saved come from the mapped file, if that is known. All others count as unmapped:
 * no missing byte reads as zero.
 */
#pragma once

#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"
#include "procmem/memory.h"

/* Provides the files that the process had mapped. */
struct core_backing {
	/*
	 * Returns a descriptor of the file that was mapped at mapping, or -1 if none is known. The
	 * contents of the mapping begin at mapping->file_offset in it. The file must be proven to
	 * be the one that was mapped, or named by the user if the core cannot prove it; for memory
	 * that the process may have changed, return -1. The descriptor belongs to the backing; both
	 * must stay valid as long as the memory is read.
	 */
	int (*file_fd)(struct core_backing *backing, const struct mapping *mapping);
};

struct core_memory {
	struct remote_memory memory;
	/* All borrowed. */
	struct file_blocks *core;
	const struct maps *saved;     /* the memory in the core; file_offset is its place there */
	const struct maps *maps;      /* all memory */
	struct core_backing *backing; /* NULL: memory that is not in the core cannot be read */
};

/* Read from the core only, until core_memory_set_backing() is called. */
void core_memory_init(struct core_memory *memory, struct file_blocks *core,
		      const struct maps *saved, const struct maps *maps);

/*
 * Read what was never saved from the backing's files; NULL: no longer. Memory that was saved but is
 * beyond the end of a truncated core is not read from them: usually it was saved because the
 * process had changed it.
 */
void core_memory_set_backing(struct core_memory *memory, struct core_backing *backing);
