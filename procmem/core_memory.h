/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process out of its core file. A byte that the core has comes from there,
 * one that it does not have from the mapped file if that was found, and any other is not
 * mapped: none is taken for a zero.
 */
#pragma once

#include <stddef.h>

#include "procmem/file_blocks.h"
#include "procmem/maps.h"
#include "procmem/memory.h"

struct core_memory {
	struct remote_memory memory;
	struct file_blocks *core; /* borrowed, as are: */
	const struct maps *saved; /* what is in the core, file_offset is where */
	const struct maps *maps;
	int *file_fds; /* by mapping: the file that has what the core lacks, borrowed; -1: none */
};

/* Read out of a core. 0 or -ENOMEM. core_memory_done() accepts one that is zero. */
int core_memory_init(struct core_memory *memory, struct file_blocks *core, const struct maps *saved,
		     const struct maps *maps);
void core_memory_done(struct core_memory *memory);

/*
 * Have what the core lacks of the mapping, one of the maps, read from the file fd, which
 * stays open, and the caller's, as long as the memory is read. The caller has made sure that
 * it is the file which was mapped, and that the process did not change what it mapped.
 */
void core_memory_set_file(struct core_memory *memory, const struct mapping *mapping, int fd);
