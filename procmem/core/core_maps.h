/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process according to its core file: the memory of the program headers, merged
 * with the files of the NT_FILE note.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"

/* Make room for max_mappings mappings and keep those present. Returns 0 or -ENOMEM. */
int core_maps_reserve(struct maps *maps, uint64_t max_mappings);

/*
 * Sort mappings by address and remove overlaps. Of two that overlap, the one with the lower start
 * keeps the common addresses; the other is cut to what remains above them, or dropped.
 */
void core_maps_sort(struct maps *maps);

/*
 * Merge the memory (loads: permissions) and the mapped files (files: path, file_offset, inode),
 * both sorted. A piece of a file that is missing from loads was not written to the core: debuggers
 * omit read-only memory. It is marked readable, and executable unless it is the beginning of its
 * file, because the core does not show which part is code. The text of files moves to ret_maps.
 * Returns 0 or -ENOMEM.
 */
int core_maps_join(const struct maps *loads, struct maps *files, struct maps *ret_maps);
