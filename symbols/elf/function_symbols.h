/* SPDX-License-Identifier: MIT */
/* The functions of a module by address: what an instruction is part of. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/image.h"

/*
 * What symbol an assembler's label is, which has no size, up to how many bytes behind it: the
 * largest functions written in assembler, of the C library, are as long.
 */
#define FUNCTION_SYMBOLS_MAX_LABEL_BYTES 4096

/* Names of a function, and of what lies in it, that are looked at to find one that covers it. */
#define FUNCTION_SYMBOLS_MAX_STEPS 32

struct function_symbols;

/*
 * Create a table of no symbols. NULL if out of memory. function_symbols_destroy() accepts
 * NULL, and closes the images.
 */
struct function_symbols *function_symbols_create(void);
void function_symbols_destroy(struct function_symbols *symbols);

/*
 * Add those of an image, .symtab and dynamic ones: of the module's file, or of its debug file,
 * which has the same vaddrs. The image is the table's from then on, also on failure. 0 or
 * -ENOMEM; -E2BIG: SYMTAB_MAX_SYMBOLS of all together.
 */
int function_symbols_add(struct function_symbols *symbols, struct image *image);

/*
 * The symbol of the function that the instruction at vaddr is part of: not demangled, borrowed
 * from the table. A global one goes before a local one of the same place. NULL: none covers it.
 */
const char *function_symbols_find(struct function_symbols *symbols, uint64_t vaddr);
