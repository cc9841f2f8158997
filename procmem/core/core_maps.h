/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process as its core file tells them: what the program headers say of
 * memory, and what the note NT_FILE says of files, put together.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"

/* Make room for so many mappings; those that are there stay. 0 or -ENOMEM. */
int core_maps_reserve(struct maps *maps, uint64_t max_mappings);

/*
 * Sort mappings by address, and cut off what overlaps: of two the one that begins lower
 * keeps the addresses that both have, and the other begins behind it or is dropped.
 */
void core_maps_sort(struct maps *maps);

/*
 * Put together what is known of memory (loads: permissions) and of mapped files (files:
 * path, file_offset, inode), both sorted. A piece of a file that loads lacks was not
 * written: debuggers leave out what is read-only. It is then readable, and executable
 * unless it is the beginning of its file, since which part is code is not told. Takes the
 * text of files. 0 or -ENOMEM.
 */
int core_maps_join(const struct maps *loads, struct maps *files, struct maps *ret_maps);
