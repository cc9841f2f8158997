/* SPDX-License-Identifier: MIT */
#include "symbols/elf/symtab.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>

bool symtab_is_place(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_TYPE(symbol->st_info)) {
	case STT_NOTYPE: /* from assembler or the linker */
	case STT_OBJECT:
	case STT_FUNC:
		return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
		       symbol->st_shndx != SHN_COMMON;
	default:
		return false;
	}
}

static int table_init(const Elf_Data *symbols, const Elf_Data *names, struct symtab *ret_table)
{
	if (!symbols || !names)
		return -ENOENT;
	*ret_table = (struct symtab){.symbols = symbols->d_buf,
				     .nr_symbols = symbols->d_size / sizeof(Elf64_Sym),
				     .names = names->d_buf,
				     .names_bytes = names->d_size};
	return 0;
}

/* Find the first symbol of that name that is a place; a global one is preferred to a local one. */
static int table_find(const struct symtab *table, const char *name, const Elf64_Sym **ret_symbol)
{
	const Elf64_Sym *local = NULL;

	for (size_t i = 0; i < table->nr_symbols; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];

		if (!symtab_is_place(symbol) || symbol->st_name >= table->names_bytes ||
		    strcmp(table->names + symbol->st_name, name) != 0)
			continue;
		if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) {
			*ret_symbol = symbol;
			return 0;
		}
		if (!local)
			local = symbol;
	}
	if (!local)
		return -ENOENT;
	*ret_symbol = local;
	return 0;
}

/* Read the first table of that type that a section header describes. */
static int section_table(const struct image *image, uint32_t type, struct symtab *ret_table)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(image_elf(image), section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);

		if (!header || header->sh_type != type || header->sh_entsize != sizeof(Elf64_Sym))
			continue;
		return table_init(image_section_data(image, elf_ndxscn(section), type,
						     SYMTAB_MAX_SYMBOLS * sizeof(Elf64_Sym)),
				  image_strings(image, header->sh_link, SYMTAB_MAX_NAMES_BYTES),
				  ret_table);
	}
	return -ENOENT;
}

/* The dynamic segment. Source: gABI, "Dynamic Section", "Hash Table". */

/* The vaddrs of the tables of the dynamic symbols; 0 if the file does not say. */
struct dynamic {
	uint64_t symbols_vaddr;
	uint64_t names_vaddr;
	uint64_t names_bytes;
	uint64_t sysv_hash_vaddr;
	uint64_t gnu_hash_vaddr;
};

static void set_table(struct dynamic *dynamic, const Elf64_Dyn *entry)
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

static struct dynamic load_dynamic(const struct image *image)
{
	struct dynamic dynamic = {.symbols_vaddr = 0};
	Elf_Data *data = NULL;
	GElf_Dyn entry;
	size_t nr_segments;
	const Elf64_Phdr *segments = image_segments(image, &nr_segments);

	for (size_t i = 0; !data && i < nr_segments; i++) {
		uint64_t size = segments[i].p_filesz;

		if (size > SYMTAB_MAX_DYNAMIC * sizeof(entry))
			size = SYMTAB_MAX_DYNAMIC * sizeof(entry);
		if (segments[i].p_type == PT_DYNAMIC)
			data = elf_getdata_rawchunk(image_elf(image), (int64_t)segments[i].p_offset,
						    size, ELF_T_DYN);
	}
	for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		set_table(&dynamic, &entry);
	return dynamic;
}

/* Read size bytes at vaddr. NULL if the file does not have them, or size exceeds max_bytes. */
static const Elf_Data *read_chunk(const struct image *image, uint64_t vaddr, uint64_t size,
				  uint64_t max_bytes, Elf_Type type)
{
	uint64_t file_offset;

	if (size == 0 || size > max_bytes || image_file_offset(image, vaddr, size, &file_offset))
		return NULL;
	return elf_getdata_rawchunk(image_elf(image), (int64_t)file_offset, size, type);
}

/*
 * The number of symbols of a DT_GNU_HASH; 0 if it is damaged. Only the end of the last chain
 * determines it.
 *
 *   u32 nr_buckets, first_symbol, nr_bloom_words, bloom_shift
 *   u64 bloom[nr_bloom_words]
 *   u32 buckets[nr_buckets]   index of the first symbol of the bucket, or 0
 *   u32 chain[]               by symbol, from first_symbol on: its hash; bit 0: the last
 *
 * Source: do_lookup_x() in elf/dl-lookup.c of glibc.
 */
static uint64_t count_by_gnu_hash(const struct image *image, uint64_t vaddr)
{
	uint32_t header[4];
	uint32_t last = 0;

	if (image_read_vaddr(image, vaddr, header, sizeof(header)))
		return 0;
	uint64_t buckets_vaddr = vaddr + sizeof(header) + header[2] * sizeof(uint64_t);
	uint64_t buckets_bytes = header[0] * sizeof(uint32_t);
	const Elf_Data *buckets = read_chunk(image, buckets_vaddr, buckets_bytes,
					     SYMTAB_MAX_SYMBOLS * sizeof(uint32_t), ELF_T_WORD);

	for (size_t i = 0; buckets && i < header[0]; i++)
		if (((const uint32_t *)buckets->d_buf)[i] > last)
			last = ((const uint32_t *)buckets->d_buf)[i];
	if (last < header[1])
		return 0;
	uint64_t chain_vaddr = buckets_vaddr + buckets_bytes - header[1] * sizeof(uint32_t);

	for (uint64_t end = (uint64_t)last + SYMTAB_MAX_CHAIN, i = last; i < end; i++) {
		uint32_t hash;

		if (image_read_vaddr(image, chain_vaddr + i * sizeof(hash), &hash, sizeof(hash)))
			return 0;
		if (hash & 1)
			return i + 1;
	}
	return 0;
}

/* DT_HASH: u32 nr_buckets, nr_symbols, … */
static uint64_t count_by_sysv_hash(const struct image *image, uint64_t vaddr)
{
	uint32_t header[2];

	return image_read_vaddr(image, vaddr, header, sizeof(header)) ? 0 : header[1];
}

/* Read the dynamic symbols as the loader finds them. */
static int dynamic_table(const struct image *image, struct symtab *ret_table)
{
	struct dynamic dynamic = load_dynamic(image);
	uint64_t nr_symbols = 0;
	const Elf_Data *names;

	if (dynamic.gnu_hash_vaddr)
		nr_symbols = count_by_gnu_hash(image, dynamic.gnu_hash_vaddr);
	else if (dynamic.sysv_hash_vaddr)
		nr_symbols = count_by_sysv_hash(image, dynamic.sysv_hash_vaddr);
	names = read_chunk(image, dynamic.names_vaddr, dynamic.names_bytes, SYMTAB_MAX_NAMES_BYTES,
			   ELF_T_BYTE);
	if (!names || ((const char *)names->d_buf)[names->d_size - 1] != '\0')
		return -ENOENT;
	return table_init(read_chunk(image, dynamic.symbols_vaddr, nr_symbols * sizeof(Elf64_Sym),
				     SYMTAB_MAX_SYMBOLS * sizeof(Elf64_Sym), ELF_T_SYM),
			  names, ret_table);
}

int symtab_read(const struct image *image, uint32_t type, struct symtab *ret_table)
{
	int err = section_table(image, type, ret_table);

	return err && type == SHT_DYNSYM ? dynamic_table(image, ret_table) : err;
}

int symtab_find(const struct image *image, const char *name, uint64_t *ret_vaddr,
		uint64_t *ret_size_bytes)
{
	const Elf64_Sym *symbol;
	struct symtab table;
	int err;

	err = symtab_read(image, SHT_DYNSYM, &table);
	if (!err)
		err = table_find(&table, name, &symbol);
	if (err) {
		err = symtab_read(image, SHT_SYMTAB, &table);
		if (!err)
			err = table_find(&table, name, &symbol);
	}
	if (err)
		return err;
	*ret_vaddr = symbol->st_value;
	*ret_size_bytes = symbol->st_size;
	return 0;
}

/* The size of a section; 0 if it is too large to be read. */
static uint64_t section_bytes(Elf_Scn *section, uint64_t max_bytes)
{
	const Elf64_Shdr *header = section ? elf64_getshdr(section) : NULL;

	return header && header->sh_size <= max_bytes ? header->sh_size : 0;
}

/* The bytes of the tables with section headers. *ret_dynamic: whether one is of dynamic symbols. */
static uint64_t sections_bytes(const struct image *image, bool *ret_dynamic)
{
	Elf *elf = image_elf(image);
	Elf_Scn *section = NULL;
	uint64_t nr_bytes = 0;

	*ret_dynamic = false;
	while ((section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);

		if (!header || (header->sh_type != SHT_SYMTAB && header->sh_type != SHT_DYNSYM))
			continue;
		*ret_dynamic |= header->sh_type == SHT_DYNSYM;
		nr_bytes += section_bytes(section, SYMTAB_MAX_SYMBOLS * sizeof(Elf64_Sym)) +
			    section_bytes(elf_getscn(elf, header->sh_link), SYMTAB_MAX_NAMES_BYTES);
	}
	return nr_bytes;
}

uint64_t symtab_bytes(const struct image *image)
{
	bool has_dynamic;
	uint64_t nr_bytes = sections_bytes(image, &has_dynamic);
	uint64_t longest = 0;
	size_t nr_segments;
	const Elf64_Phdr *segments = image_segments(image, &nr_segments);

	if (has_dynamic)
		return nr_bytes;
	/* The number of dynamic symbols is in the hashes only; the longest segment bounds it. */
	for (size_t i = 0; i < nr_segments; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_filesz > longest)
			longest = segments[i].p_filesz;
	if (longest > SYMTAB_MAX_SYMBOLS * sizeof(Elf64_Sym))
		longest = SYMTAB_MAX_SYMBOLS * sizeof(Elf64_Sym);
	return nr_bytes + longest;
}
