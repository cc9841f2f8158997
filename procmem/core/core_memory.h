/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process out of its core file. A byte that the core has comes from there,
 * one that it never had from the mapped file if somebody knows that, and any other is not
 * mapped: none is taken for a zero.
 */
#pragma once

#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"
#include "procmem/memory.h"

/* Who knows the files that the process had mapped. */
struct core_backing {
	/*
	 * The file that has, from mapping->file_offset on, what is mapped there: the one that was
	 * mapped, proven or by the word of the user where the core cannot tell, and nothing that
	 * the process may have changed. Its descriptor, which stays open, and the backing's, as
	 * long as the memory is read; -1: none is known.
	 */
	int (*file_fd)(struct core_backing *backing, const struct mapping *mapping);
};

struct core_memory {
	struct remote_memory memory;
	struct file_blocks *core; /* borrowed, as are: */
	const struct maps *saved; /* what is in the core, file_offset is where */
	const struct maps *maps;
	struct core_backing *backing; /* NULL: what is not in the core cannot be read */
};

/* Read out of a core, and of nothing else until core_memory_set_backing(). */
void core_memory_init(struct core_memory *memory, struct file_blocks *core,
		      const struct maps *saved, const struct maps *maps);

/*
 * Read what the core never had out of the backing's files; NULL: no more. What was saved, but
 * lies behind the end of a core that is cut off, does not come from them: mostly it was saved
 * since the process had changed it.
 */
void core_memory_set_backing(struct core_memory *memory, struct core_backing *backing);
