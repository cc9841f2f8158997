/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_image.h"

#include <errno.h>
#include <string.h>

#include "procmem/machine.h"

static bool is_inside(const struct jit_image *image, uint64_t offset, uint64_t nr_bytes)
{
	return offset <= image->nr_bytes && nr_bytes <= image->nr_bytes - offset;
}

bool jit_image_section(const struct jit_image *image, uint32_t index, Elf64_Shdr *ret_header)
{
	if (index >= image->nr_sections)
		return false;
	memcpy(ret_header, image->bytes + image->sections_offset + index * sizeof(*ret_header),
	       sizeof(*ret_header));
	return true;
}

const uint8_t *jit_image_bytes(const struct jit_image *image, const Elf64_Shdr *header)
{
	if (header->sh_type == SHT_NOBITS || !is_inside(image, header->sh_offset, header->sh_size))
		return NULL;
	return image->bytes + header->sh_offset;
}

/* The string table at index, whose last byte is a NUL. NULL if it is not one. */
static const char *strings_of(const struct jit_image *image, uint32_t index, size_t *ret_nr_bytes)
{
	Elf64_Shdr header;
	const uint8_t *bytes;

	if (!jit_image_section(image, index, &header) || header.sh_type != SHT_STRTAB ||
	    !header.sh_size)
		return NULL;
	bytes = jit_image_bytes(image, &header);
	if (!bytes || bytes[header.sh_size - 1] != '\0')
		return NULL;
	*ret_nr_bytes = header.sh_size;
	return (const char *)bytes;
}

int jit_image_init(struct jit_image *image, const uint8_t *bytes, size_t nr_bytes)
{
	Elf64_Ehdr header;

	*image = (struct jit_image){.bytes = bytes, .nr_bytes = nr_bytes};
	if (nr_bytes < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_machine != MACHINE_ELF || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    header.e_shnum > JIT_IMAGE_MAX_SECTIONS ||
	    !is_inside(image, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
		return -EBADMSG;
	image->is_relocatable = header.e_type == ET_REL;
	image->sections_offset = header.e_shoff;
	image->nr_sections = header.e_shnum;
	image->section_names = strings_of(image, header.e_shstrndx, &image->section_names_bytes);
	return 0;
}

uint32_t jit_image_find_section(const struct jit_image *image, const char *name)
{
	Elf64_Shdr header;

	for (uint32_t i = 1; image->section_names && jit_image_section(image, i, &header); i++)
		if ((header.sh_flags & SHF_ALLOC) && header.sh_name < image->section_names_bytes &&
		    strcmp(image->section_names + header.sh_name, name) == 0)
			return i;
	return 0;
}

/* Find the symbol table and its strings. Returns false if there is none. */
static bool find_symbols(const struct jit_image *image, Elf64_Shdr *ret_table,
			 const char **ret_names, size_t *ret_names_bytes)
{
	for (uint32_t i = 1; jit_image_section(image, i, ret_table); i++) {
		if (ret_table->sh_type != SHT_SYMTAB || !jit_image_bytes(image, ret_table))
			continue;
		*ret_names = strings_of(image, ret_table->sh_link, ret_names_bytes);
		return *ret_names != NULL;
	}
	return false;
}

/*
 * Locate the function of a symbol. Returns false if it is not a function or its place is unknown.
 */
static bool place_function(const struct jit_image *image, const Elf64_Sym *symbol,
			   struct jit_image_function *function)
{
	remote_addr end_addr;
	Elf64_Shdr section;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
	    symbol->st_shndx == SHN_UNDEF || !jit_image_section(image, symbol->st_shndx, &section))
		return false;
	function->start_addr = symbol->st_value;
	if (image->is_relocatable)
		function->start_addr += section.sh_addr;
	function->nr_bytes = symbol->st_size;
	function->section = symbol->st_shndx;
	/* A section at 0 is not loaded yet. */
	return section.sh_addr &&
	       !__builtin_add_overflow(function->start_addr, function->nr_bytes, &end_addr);
}

bool jit_image_next_function(const struct jit_image *image, uint32_t *position,
			     struct jit_image_function *ret_function)
{
	Elf64_Shdr table;
	const char *names;
	size_t names_bytes;

	if (!find_symbols(image, &table, &names, &names_bytes))
		return false;
	while (*position < table.sh_size / sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, image->bytes + table.sh_offset + *position * sizeof(symbol),
		       sizeof(symbol));
		(*position)++;
		if (symbol.st_name >= names_bytes || !place_function(image, &symbol, ret_function))
			continue;
		ret_function->name = names + symbol.st_name;
		return true;
	}
	return false;
}
