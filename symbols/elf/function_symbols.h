/* SPDX-License-Identifier: MIT */
/* The functions of a module by address: finds the symbol that covers an instruction. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/image.h"

/*
 * A label written in assembler has no size and covers this many bytes: the largest assembler
 * functions, those of the C library, are as long.
 */
#define FUNCTION_SYMBOLS_MAX_LABEL_BYTES 4096

/*
 * The same in a module that has been stripped: the next functions may have lost their names.
 * musl's memset() has 196.
 */
#define FUNCTION_SYMBOLS_MAX_STRIPPED_LABEL_BYTES 200

/*
 * Symbols examined, from the nearest start downwards, to find one that covers an address. Aliases
 * of the function and labels inside it come first.
 */
#define FUNCTION_SYMBOLS_MAX_STEPS 32

struct function_symbols;

/*
 * Create an empty table. NULL if out of memory. function_symbols_destroy() accepts NULL, and
 * closes the images.
 */
struct function_symbols *function_symbols_create(void);
void function_symbols_destroy(struct function_symbols *symbols);

/*
 * Add the symbols of an image, .symtab and dynamic ones: the module's file, or its debug file,
 * which has the same vaddrs. Takes ownership of the image, also on failure.
 *
 * Returns 0; -ENOMEM; -E2BIG if all images together have more than SYMTAB_MAX_SYMBOLS.
 */
int function_symbols_add(struct function_symbols *symbols, struct image *image);

/*
 * The symbol of the function that contains the instruction at vaddr: not demangled, borrowed from
 * the table. Of symbols at one place a global one is preferred to a local one. NULL: none covers
 * it.
 */
const char *function_symbols_find(struct function_symbols *symbols, uint64_t vaddr);
