/* SPDX-License-Identifier: MIT */
/*
 * Finds the lists of its own code that a program keeps in its memory, for debuggers (gdb_jit.h)
 * and for libunwind (libunwind_jit.h), by the symbols of its modules, and reads them into one
 * map. Also finds the list of stdio FILEs, through which jitdumps are written.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/jit/jit_map.h"

struct jit_lists;

/*
 * Create for a memory, which is borrowed. Nothing is read yet. NULL if out of memory.
 * jit_lists_destroy() accepts NULL.
 */
struct jit_lists *jit_lists_create(struct remote_memory *memory);
void jit_lists_destroy(struct jit_lists *lists);

/*
 * Search for lists in the modules of maps that were not searched yet: in the files that source
 * opens, or in the memory. Returns 0 or -ENOMEM.
 */
int jit_lists_find(struct jit_lists *lists, const struct maps *maps, struct image_source *source);

/*
 * The addresses of the heads of FILE lists (stdio_file.h), one for each of *ret_nr_lists
 * libraries. Borrowed until the next search.
 */
const remote_addr *jit_lists_stdio(const struct jit_lists *lists, uint32_t *ret_nr_lists);

/* Add the new codes of all lists to map, and end those that are gone. As gdb_jit_read(). */
int jit_lists_read(struct jit_lists *lists, struct jit_map *map, uint64_t first_ns,
		   uint64_t now_ns);
