/* SPDX-License-Identifier: MIT */
#include "symbols/symtab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Symbols read at a time while a table is searched. */
#define SYMBOLS_PER_READ 256

/*
 * Whether a symbol is a place in the file: not TLS offsets, not resolvers
 * (IFUNC), not plain numbers (SHN_ABS), not what another file defines.
 */
static bool is_place(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_TYPE(symbol->st_info)) {
	case STT_NOTYPE: /* written in assembler, or made by the linker */
	case STT_OBJECT:
	case STT_FUNC:
		return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
		       symbol->st_shndx != SHN_COMMON;
	default:
		return false;
	}
}

/* The dynamic segment and its hash tables. Source: gABI, "Dynamic Section", "Hash Table". */

/* Where the dynamic symbols are, as vaddrs; 0 if the file does not say. */
struct dynamic {
	uint64_t symbols_vaddr;
	uint64_t names_vaddr;
	uint64_t names_bytes;
	uint64_t sysv_hash_vaddr;
	uint64_t gnu_hash_vaddr;
};

static void take_entry(struct dynamic *dynamic, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		dynamic->symbols_vaddr = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		dynamic->names_vaddr = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		dynamic->names_bytes = entry->d_un.d_val;
		break;
	case DT_HASH:
		dynamic->sysv_hash_vaddr = entry->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash_vaddr = entry->d_un.d_ptr;
		break;
	default:
		break;
	}
}

static int load_dynamic(const struct image *image, struct dynamic *ret_dynamic)
{
	struct dynamic dynamic = {.symbols_vaddr = 0};
	const Elf64_Phdr *segment = NULL;
	size_t nr_segments;
	const Elf64_Phdr *segments = image_segments(image, &nr_segments);

	for (size_t i = 0; i < nr_segments; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			segment = &segments[i];
	if (!segment)
		return -ENOENT;
	for (uint64_t i = 0; i < SYMTAB_MAX_DYNAMIC; i++) {
		Elf64_Dyn entry;

		if (i >= segment->p_filesz / sizeof(entry) ||
		    image_read(image, segment->p_offset + i * sizeof(entry), &entry,
			       sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		take_entry(&dynamic, &entry);
	}
	if (!dynamic.symbols_vaddr || !dynamic.names_vaddr)
		return -ENOENT;
	*ret_dynamic = dynamic;
	return 0;
}

/* Element index of a table of size-byte elements at vaddr. */
static int read_element(const struct image *image, uint64_t vaddr, uint64_t index, void *element,
			size_t size)
{
	uint64_t offset;

	if (__builtin_mul_overflow(index, size, &offset) ||
	    __builtin_add_overflow(vaddr, offset, &vaddr))
		return -EFAULT;
	return image_read_vaddr(image, vaddr, element, size);
}

/* Whether the string at vaddr is name. */
static bool name_is(const struct image *image, uint64_t vaddr, const char *name)
{
	size_t left = strlen(name) + 1;
	char part[64];

	while (left > 0) {
		size_t size = left < sizeof(part) ? left : sizeof(part);

		if (image_read_vaddr(image, vaddr, part, size) || memcmp(part, name, size) != 0)
			return false;
		left -= size;
		name += size;
		vaddr += size;
	}
	return true;
}

/* Whether dynamic symbol index is a place called name. */
static bool dynamic_symbol_is(const struct image *image, const struct dynamic *dynamic,
			      uint32_t index, const char *name, Elf64_Sym *ret_symbol)
{
	return !read_element(image, dynamic->symbols_vaddr, index, ret_symbol,
			     sizeof(*ret_symbol)) &&
	       is_place(ret_symbol) &&
	       (!dynamic->names_bytes || ret_symbol->st_name < dynamic->names_bytes) &&
	       name_is(image, dynamic->names_vaddr + ret_symbol->st_name, name);
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/*
 * DT_GNU_HASH: header, bloom filter (not needed for one name), buckets, chain.
 *
 *   u32 nr_buckets, first_symbol, nr_bloom_words, bloom_shift
 *   u64 bloom[nr_bloom_words]
 *   u32 buckets[nr_buckets]   index of the first symbol of the bucket, or 0
 *   u32 chain[]               of symbol first_symbol on: its hash; bit 0: the last
 *
 * Source: do_lookup_x() in elf/dl-lookup.c of glibc.
 */
static int find_by_gnu_hash(const struct image *image, const struct dynamic *dynamic,
			    const char *name, Elf64_Sym *ret_symbol)
{
	uint32_t hash = gnu_hash(name);
	uint32_t header[4];
	uint32_t index;

	if (image_read_vaddr(image, dynamic->gnu_hash_vaddr, header, sizeof(header)) ||
	    header[0] == 0)
		return -ENOENT;
	uint64_t buckets_vaddr =
		dynamic->gnu_hash_vaddr + sizeof(header) + (uint64_t)header[2] * sizeof(uint64_t);
	uint64_t chain_vaddr = buckets_vaddr + (uint64_t)header[0] * sizeof(uint32_t);

	if (read_element(image, buckets_vaddr, hash % header[0], &index, sizeof(index)) ||
	    index < header[1])
		return -ENOENT;
	for (int i = 0; i < SYMTAB_MAX_CHAIN; i++, index++) {
		uint32_t symbol_hash;

		if (read_element(image, chain_vaddr, index - header[1], &symbol_hash,
				 sizeof(symbol_hash)))
			return -ENOENT;
		if ((symbol_hash | 1) == (hash | 1) &&
		    dynamic_symbol_is(image, dynamic, index, name, ret_symbol))
			return 0;
		if (symbol_hash & 1)
			return -ENOENT;
	}
	return -ENOENT;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		hash ^= (hash & 0xf0000000) >> 24;
		hash &= 0x0fffffff;
	}
	return hash;
}

/* DT_HASH: u32 nr_buckets, nr_symbols, buckets[nr_buckets], next[nr_symbols]; 0 ends a chain. */
static int find_by_sysv_hash(const struct image *image, const struct dynamic *dynamic,
			     const char *name, Elf64_Sym *ret_symbol)
{
	uint32_t header[2];
	uint32_t index;

	if (image_read_vaddr(image, dynamic->sysv_hash_vaddr, header, sizeof(header)) ||
	    header[0] == 0)
		return -ENOENT;
	uint64_t buckets_vaddr = dynamic->sysv_hash_vaddr + sizeof(header);

	if (read_element(image, buckets_vaddr, sysv_hash(name) % header[0], &index, sizeof(index)))
		return -ENOENT;
	for (int i = 0; i < SYMTAB_MAX_CHAIN && index != STN_UNDEF; i++) {
		if (dynamic_symbol_is(image, dynamic, index, name, ret_symbol))
			return 0;
		if (read_element(image, buckets_vaddr, (uint64_t)header[0] + index, &index,
				 sizeof(index)))
			return -ENOENT;
	}
	return -ENOENT;
}

static int find_dynamic(const struct image *image, const char *name, Elf64_Sym *ret_symbol)
{
	struct dynamic dynamic;
	int err;

	err = load_dynamic(image, &dynamic);
	if (err)
		return err;
	if (dynamic.gnu_hash_vaddr)
		return find_by_gnu_hash(image, &dynamic, name, ret_symbol);
	if (dynamic.sysv_hash_vaddr)
		return find_by_sysv_hash(image, &dynamic, name, ret_symbol);
	return -ENOENT;
}

/* The symbol tables that section headers lead to. */

/* A table while it is searched. */
struct table {
	const struct image *image;
	const Elf64_Shdr *section;
	char *names; /* names_bytes, the last one a NUL; owned */
	size_t names_bytes;
};

/* Load the names of a table. -ENOENT if they are damaged. */
static int table_load(struct table *table, const Elf64_Shdr *names)
{
	cleanup_free char *copy = NULL;
	char last;

	/* The last byte first: a size that lies must not cost its memory. */
	if (names->sh_type != SHT_STRTAB || names->sh_size == 0 ||
	    names->sh_size > SYMTAB_MAX_NAMES_BYTES ||
	    names->sh_offset > UINT64_MAX - names->sh_size ||
	    image_read(table->image, names->sh_offset + names->sh_size - 1, &last, 1) ||
	    last != '\0')
		return -ENOENT;
	copy = malloc(names->sh_size);
	if (!copy)
		return -ENOMEM;
	if (image_read(table->image, names->sh_offset, copy, names->sh_size))
		return -ENOENT;
	copy[names->sh_size - 1] = '\0'; /* the file may have changed in between */
	table->names_bytes = names->sh_size;
	table->names = take_ptr(copy);
	return 0;
}

/* Look through symbols; true at a global one. A first local one is kept in *found as well. */
static bool search(const struct table *table, const Elf64_Sym *symbols, size_t nr_symbols,
		   const char *name, Elf64_Sym *found)
{
	for (size_t i = 0; i < nr_symbols; i++) {
		const Elf64_Sym *symbol = &symbols[i];
		bool local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;

		if (!is_place(symbol) || symbol->st_name >= table->names_bytes ||
		    strcmp(table->names + symbol->st_name, name) != 0)
			continue;
		if (!local || found->st_shndx == SHN_UNDEF)
			*found = *symbol;
		if (!local)
			return true;
	}
	return false;
}

/* Search the table whole, unless a damaged one ends early. */
static int table_find(const struct table *table, const char *name, Elf64_Sym *ret_symbol)
{
	Elf64_Sym symbols[SYMBOLS_PER_READ];
	Elf64_Sym found = {.st_shndx = SHN_UNDEF};
	uint64_t left = table->section->sh_size / sizeof(symbols[0]);
	uint64_t file_offset = table->section->sh_offset;
	bool done = false;

	if (left > SYMTAB_MAX_SYMBOLS)
		left = SYMTAB_MAX_SYMBOLS;
	while (!done && left > 0) {
		size_t nr_symbols = left < SYMBOLS_PER_READ ? left : SYMBOLS_PER_READ;
		size_t size = nr_symbols * sizeof(symbols[0]);

		if (image_read(table->image, file_offset, symbols, size))
			break;
		done = search(table, symbols, nr_symbols, name, &found);
		file_offset += size;
		left -= nr_symbols;
	}
	if (found.st_shndx == SHN_UNDEF)
		return -ENOENT;
	*ret_symbol = found;
	return 0;
}

/* Search the first table of that type. */
static int find_in_section(const struct image *image, uint32_t type, const char *name,
			   Elf64_Sym *ret_symbol)
{
	size_t nr_sections;
	const Elf64_Shdr *sections = image_sections(image, &nr_sections);

	for (size_t i = 0; i < nr_sections; i++) {
		const Elf64_Shdr *section = &sections[i];
		struct table table = {.image = image, .section = section};
		int err;

		if (section->sh_type != type || section->sh_link >= nr_sections ||
		    section->sh_entsize != sizeof(Elf64_Sym))
			continue;
		err = table_load(&table, &sections[section->sh_link]);
		if (!err)
			err = table_find(&table, name, ret_symbol);
		free(table.names);
		return err;
	}
	return -ENOENT;
}

int symtab_find(const struct image *image, const char *name, uint64_t *ret_vaddr,
		uint64_t *ret_size_bytes)
{
	Elf64_Sym symbol;
	int err;

	err = find_dynamic(image, name, &symbol);
	if (err == -ENOENT)
		err = find_in_section(image, SHT_DYNSYM, name, &symbol);
	if (err == -ENOENT)
		err = find_in_section(image, SHT_SYMTAB, name, &symbol);
	if (err)
		return err;
	*ret_vaddr = symbol.st_value;
	*ret_size_bytes = symbol.st_size;
	return 0;
}
