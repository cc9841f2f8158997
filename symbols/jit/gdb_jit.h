/* SPDX-License-Identifier: MIT */
/*
 * The lists that programs keep of their own code for debuggers: __jit_debug_descriptor, one for
 * each module that has it (CPython from 3.15 on, libLLVM), and what each entry points to, an ELF
 * file.
 *
 * A debugger is told of each change by a breakpoint; here the list is read while the target changes
 * it (remote_list.h). What is known is not read again, but for what tells that it is still the
 * same.
 *
 * Source: GDB's documentation, "JIT Compilation Interface"; Python/jit_unwind.c of CPython 3.15.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_body.h"
#include "symbols/jit/jit_map.h"

/* Lists of one process; others are left out. One module has one. */
#define GDB_JIT_MAX_LISTS 16

/* A larger file is left out: LLVM's have some 100 KiB. */
#define GDB_JIT_MAX_IMAGE_BYTES (16u << 20)

/* Files that are read at one look; the rest is read at the next one. */
#define GDB_JIT_MAX_LOOK_BYTES (256u << 20)

struct gdb_jit;

/*
 * Read lists of memory, which is borrowed; there are none yet. NULL if out of memory.
 * gdb_jit_destroy() accepts NULL.
 */
struct gdb_jit *gdb_jit_create(struct remote_memory *memory);
void gdb_jit_destroy(struct gdb_jit *gdb_jit);

/* The symbol that a list has in its module. */
#define GDB_JIT_SYMBOL "__jit_debug_descriptor"

/*
 * Read from now on the list whose descriptor is at that address, if it is not read already. 0 or
 * -E2BIG (GDB_JIT_MAX_LISTS).
 */
int gdb_jit_add_list(struct gdb_jit *gdb_jit, remote_addr descriptor_addr);

/*
 * Read what is new in all lists into map, and end what is gone, at now_ns (CLOCK_MONOTONIC).
 * What is new was made since the last look, and is of that time, the first time of first_ns.
 * 0; -ENOMEM; -ESRCH; -EPERM. What cannot be read otherwise is left out.
 */
int gdb_jit_read(struct gdb_jit *gdb_jit, struct jit_map *map, uint64_t first_ns, uint64_t now_ns);

/*
 * Read how to unwind a code that came from a list; jit_body_done() what was read. 0; -ENOENT (it
 * is gone); -ENOMEM; -ESRCH; -EPERM.
 */
int gdb_jit_read_body(struct remote_memory *memory, const struct jit_code *code,
		      struct jit_body *ret_body);
