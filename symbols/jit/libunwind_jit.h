/* SPDX-License-Identifier: MIT */
/*
 * The lists that programs keep of their own code for libunwind: what they gave to
 * _U_dyn_register(), one list for each copy of libunwind. Entries have a name and a range; how to
 * unwind the code they tell in a language of libunwind's own, which is not read.
 *
 * A list counts its changes, so that one look in which it has not changed reads 16 bytes. Each
 * change is counted before it is made, under a lock that only the process can take: a list is
 * taken for unchanged once two walks have begun with the same count, and the same first entry.
 *
 * Source: libunwind-dynamic(3) and libunwind-dynamic.h; _U_dyn_register() of libunwind 1.6.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"

/*
 * The symbols by which a list is found. Of shared libraries the first one is hidden, and stripped
 * as a rule, and the second one, a function that returns the list's address, is public.
 */
#define LIBUNWIND_JIT_LIST_SYMBOL     "_U_dyn_info_list"
#define LIBUNWIND_JIT_FUNCTION_SYMBOL "_U_dyn_info_list_addr"

/* Lists of one process; others are left out. One copy of libunwind has one. */
#define LIBUNWIND_JIT_MAX_LISTS 16

/* A longer name is left out: C++ has thousands of bytes at most. */
#define LIBUNWIND_JIT_MAX_NAME_BYTES 4096

struct libunwind_jit;

/*
 * Read lists of memory, which is borrowed; there are none yet. NULL if out of memory.
 * libunwind_jit_destroy() accepts NULL.
 */
struct libunwind_jit *libunwind_jit_create(struct remote_memory *memory);
void libunwind_jit_destroy(struct libunwind_jit *jit);

/*
 * Read from now on the list at that address, or whose address the function at that one returns, if
 * it is not read already. 0; -E2BIG (LIBUNWIND_JIT_MAX_LISTS); of a function also -ENOENT (by its
 * instructions it does something else; always so but on x86-64), -EFAULT, -ESRCH, -EPERM.
 */
int libunwind_jit_add_list(struct libunwind_jit *jit, remote_addr list_addr);
int libunwind_jit_add_function(struct libunwind_jit *jit, remote_addr function_addr);

/* Read what is new into map, and end what is gone: all as gdb_jit_read() (gdb_jit.h). */
int libunwind_jit_read(struct libunwind_jit *jit, struct jit_map *map, uint64_t first_ns,
		       uint64_t now_ns);
