/* SPDX-License-Identifier: MIT */
/*
 * Reads the lists of their own code that programs keep for debuggers: a __jit_debug_descriptor
 * for each module that has one (CPython from 3.15 on, libLLVM), whose entries each point to an
 * ELF file.
 *
 * A debugger learns of each change through a breakpoint; here the list is read while the target
 * changes it (remote_list.h). Of a known entry only what proves that it is unchanged is read
 * again.
 *
 * Source: GDB's documentation, "JIT Compilation Interface"; Python/jit_unwind.c of CPython 3.15.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_body.h"
#include "symbols/jit/jit_map.h"

/* Limit on the lists of one process; others are left out. A module has at most one. */
#define GDB_JIT_MAX_LISTS 16

/* Limit on an entry's ELF file; larger ones are left out. LLVM's have some 100 KiB. */
#define GDB_JIT_MAX_IMAGE_BYTES (16u << 20)

/* Limit on the bytes of ELF files that one gdb_jit_read() reads; the next one reads the rest. */
#define GDB_JIT_MAX_READ_BYTES (256u << 20)

struct gdb_jit;

/*
 * Create a reader of lists in memory, which is borrowed. It has no lists yet. NULL if out of
 * memory. gdb_jit_destroy() accepts NULL.
 */
struct gdb_jit *gdb_jit_create(struct remote_memory *memory);
void gdb_jit_destroy(struct gdb_jit *gdb_jit);

/* The symbol of a list in its module. */
#define GDB_JIT_SYMBOL "__jit_debug_descriptor"

/*
 * Add the list whose descriptor is at that address, unless it has been added. Returns 0, or
 * -E2BIG (GDB_JIT_MAX_LISTS).
 */
int gdb_jit_add_list(struct gdb_jit *gdb_jit, remote_addr descriptor_addr);

/*
 * Add the new codes of all lists to map, and end those that are gone at now_ns (CLOCK_MONOTONIC).
 * A new code gets the time of the last reading as its start, and first_ns at the first one. What
 * cannot be read for other reasons is left out.
 *
 * Returns 0; -ENOMEM; -ESRCH; -EPERM.
 */
int gdb_jit_read(struct gdb_jit *gdb_jit, struct jit_map *map, uint64_t first_ns, uint64_t now_ns);

/*
 * Read the unwind information of a code that came from a list. The caller releases the body with
 * jit_body_done(). Returns 0; -ENOENT if the code is gone; -ENOMEM; -ESRCH; -EPERM.
 */
int gdb_jit_read_body(struct remote_memory *memory, const struct jit_code *code,
		      struct jit_body *ret_body);
