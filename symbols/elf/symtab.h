/* SPDX-License-Identifier: MIT */
/* The symbols of one ELF file: .dynsym (found without section headers) and .symtab. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/image.h"

/*
 * More bytes of symbol names than this are not searched; the largest programs
 * known have a few hundred MiB, Python with all its symbols has half of one.
 */
#define SYMTAB_MAX_NAMES_BYTES (512u << 20)

/* A chain of DT_GNU_HASH longer than this is damaged: they have a symbol or two. */
#define SYMTAB_MAX_CHAIN 4096

/* A table of more symbols is not searched: the largest libraries seen have 1 Mi. */
#define SYMTAB_MAX_SYMBOLS (8u << 20)

/* Entries of the dynamic segment that are looked at; linkers write about thirty. */
#define SYMTAB_MAX_DYNAMIC 1024

/* A table as the file has it: nothing in it was checked but what is said here. */
struct symtab {
	const Elf64_Sym *symbols; /* borrowed from the image, as are the names */
	size_t nr_symbols;
	const char *names; /* the last of names_bytes is a NUL */
	size_t names_bytes;
};

/*
 * The dynamic symbols (type SHT_DYNSYM; through the dynamic segment where section headers are
 * stripped), or .symtab (SHT_SYMTAB). 0 or -ENOENT, as symtab_find() says.
 */
int symtab_read(const struct image *image, uint32_t type, struct symtab *ret_table);

/*
 * The defined data or function symbol called name: its vaddr and size (0 if the
 * file does not say). The dynamic symbols are asked first, through the dynamic
 * segment where section headers are stripped. A global one goes before a local
 * one. What was read stays with the image until it is closed, and without section
 * headers each call reads it anew. 0 or -ENOENT (also if the tables are damaged,
 * or libelf lacks memory).
 */
int symtab_find(const struct image *image, const char *name, uint64_t *ret_vaddr,
		uint64_t *ret_size_bytes);

/*
 * How many bytes of symbols and names symtab_find() reads of the file at most, by what its
 * headers say: none of these is read.
 */
uint64_t symtab_bytes(const struct image *image);

/*
 * Whether a symbol is a place in the file: not TLS offsets, not resolvers
 * (IFUNC), not plain numbers (SHN_ABS), not what another file defines.
 */
bool symtab_is_place(const Elf64_Sym *symbol);
