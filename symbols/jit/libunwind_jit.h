/* SPDX-License-Identifier: MIT */
/*
 * Reads the lists of their own code that programs keep for libunwind: what they passed to
 * _U_dyn_register(), one list for each copy of libunwind. Entries have a name and a range. Their
 * unwind information is in a format of libunwind's own, which is not read.
 *
 * A list counts its changes, so only 16 bytes of an unchanged list are read. A change is counted
 * before it is made, under a lock that only the process can take. So a list counts as unchanged
 * only after two walks that began with the same count and the same first entry.
 *
 * Source: libunwind-dynamic(3) and libunwind-dynamic.h; _U_dyn_register() of libunwind 1.6.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"

/*
 * The symbols that lead to a list. In shared libraries the list is hidden, and usually stripped,
 * but the function that returns its address is public.
 */
#define LIBUNWIND_JIT_LIST_SYMBOL     "_U_dyn_info_list"
#define LIBUNWIND_JIT_FUNCTION_SYMBOL "_U_dyn_info_list_addr"

/* Limit on the lists of one process; others are left out. A copy of libunwind has one. */
#define LIBUNWIND_JIT_MAX_LISTS 16

/* Limit on a name; longer ones are left out. C++ names have thousands of bytes at most. */
#define LIBUNWIND_JIT_MAX_NAME_BYTES 4096

struct libunwind_jit;

/*
 * Create a reader of lists in memory, which is borrowed. It has no lists yet. NULL if out of
 * memory. libunwind_jit_destroy() accepts NULL.
 */
struct libunwind_jit *libunwind_jit_create(struct remote_memory *memory);
void libunwind_jit_destroy(struct libunwind_jit *jit);

/*
 * Add the list at list_addr, or the list whose address the function at function_addr returns,
 * unless it has been added.
 *
 * Returns 0; -E2BIG (LIBUNWIND_JIT_MAX_LISTS). For a function also -ENOENT, if its instructions
 * do something else; -EFAULT, -ESRCH, -EPERM.
 */
int libunwind_jit_add_list(struct libunwind_jit *jit, remote_addr list_addr);
int libunwind_jit_add_function(struct libunwind_jit *jit, remote_addr function_addr);

/* Add the new codes to map, and end those that are gone. As gdb_jit_read() (gdb_jit.h). */
int libunwind_jit_read(struct libunwind_jit *jit, struct jit_map *map, uint64_t first_ns,
		       uint64_t now_ns);
