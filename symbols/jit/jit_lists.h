/* SPDX-License-Identifier: MIT */
/*
 * The lists of its own code that a program keeps in its memory, for debuggers (gdb_jit.h) and for
 * libunwind (libunwind_jit.h): found by the symbols of its modules, and read into one map. The list
 * of its FILEs is found beside them, as jitdumps are written by stdio.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/jit/jit_map.h"

struct jit_lists;

/*
 * Look for lists in memory, which is borrowed; nothing is looked at yet. NULL if out of memory.
 * jit_lists_destroy() accepts NULL.
 */
struct jit_lists *jit_lists_create(struct remote_memory *memory);
void jit_lists_destroy(struct jit_lists *lists);

/*
 * Look for lists in the modules of maps that were not looked at yet: in the files that source
 * opens, or in the memory. 0 or -ENOMEM.
 */
int jit_lists_find(struct jit_lists *lists, const struct maps *maps, struct image_source *source);

/*
 * Where the heads of lists of FILEs are (stdio_file.h), of *ret_nr_lists libraries; borrowed until
 * the next search.
 */
const remote_addr *jit_lists_stdio(const struct jit_lists *lists, uint32_t *ret_nr_lists);

/* Read what is new in all of them into map, and end what is gone: all as gdb_jit_read(). */
int jit_lists_read(struct jit_lists *lists, struct jit_map *map, uint64_t first_ns,
		   uint64_t now_ns);
