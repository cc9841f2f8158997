/* SPDX-License-Identifier: MIT */
/*
 * The symbols of one ELF file: .dynsym, which is found even without section headers, and .symtab.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/image.h"

/*
 * Limit on the bytes of symbol names searched. The largest programs known have a few hundred MiB;
 * Python with all its symbols has half of one.
 */
#define SYMTAB_MAX_NAMES_BYTES (512u << 20)

/* Limit on a chain of DT_GNU_HASH; a longer one is damaged. Chains have a symbol or two. */
#define SYMTAB_MAX_CHAIN 4096

/*
 * Limit on the symbols of a table; a longer one is not searched. The largest libraries seen have
 * 1 Mi.
 */
#define SYMTAB_MAX_SYMBOLS (8u << 20)

/* Limit on the entries read of the dynamic segment; linkers write about thirty. */
#define SYMTAB_MAX_DYNAMIC 1024

/* A symbol table as in the file. Only what is stated here has been checked. */
struct symtab {
	const Elf64_Sym *symbols; /* borrowed from the image, like the names */
	size_t nr_symbols;
	const char *names; /* names[names_bytes - 1] is a NUL */
	size_t names_bytes;
};

/*
 * Read the dynamic symbols (type SHT_DYNSYM; through the dynamic segment if section headers are
 * stripped) or .symtab (SHT_SYMTAB). Returns 0 or -ENOENT, as symtab_find().
 */
int symtab_read(const struct image *image, uint32_t type, struct symtab *ret_table);

/*
 * Find the defined data or function symbol called name: its vaddr and size, which is 0 if the
 * file does not say. The dynamic symbols are searched first, then .symtab. A global symbol is
 * preferred to a local one. What was read stays with the image until it is closed; without
 * section headers each call reads it again. Returns 0, or -ENOENT, also if the tables are damaged
 * or libelf lacks memory.
 */
int symtab_find(const struct image *image, const char *name, uint64_t *ret_vaddr,
		uint64_t *ret_size_bytes);

/*
 * Upper bound on the bytes of symbols and names that symtab_find() reads of the file, from its
 * headers alone.
 */
uint64_t symtab_bytes(const struct image *image);

/*
 * Whether a symbol is a place in the file. TLS offsets, resolvers (IFUNC), plain numbers
 * (SHN_ABS) and symbols that another file defines are not.
 */
bool symtab_is_place(const Elf64_Sym *symbol);
