/* SPDX-License-Identifier: MIT */
#include "output/dump/code_object.h"

#include <errno.h>
#include <libelf.h>
#include <string.h>

#include "output/dump/code_debug_info.h"

/* The sections, in their order in the file; the first one is nothing. */
enum section {
	SECTION_NULL,
	SECTION_TEXT,
	SECTION_EH_FRAME,
	SECTION_DEBUG_ABBREV,
	SECTION_DEBUG_INFO,
	SECTION_DEBUG_ARANGES,
	SECTION_DEBUG_LINE,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_SHSTRTAB,
};

static const char *const section_names[] = {
	[SECTION_NULL] = "",
	[SECTION_TEXT] = ".text",
	[SECTION_EH_FRAME] = ".eh_frame",
	[SECTION_DEBUG_ABBREV] = ".debug_abbrev",
	[SECTION_DEBUG_INFO] = ".debug_info",
	[SECTION_DEBUG_ARANGES] = ".debug_aranges",
	[SECTION_DEBUG_LINE] = ".debug_line",
	[SECTION_SYMTAB] = ".symtab",
	[SECTION_STRTAB] = ".strtab",
	[SECTION_SHSTRTAB] = ".shstrtab",
};
enum { NR_SECTIONS = sizeof(section_names) / sizeof(section_names[0]) };

/* What is being written. libelf keeps pointers to what the sections hold until it has written. */
struct writing {
	const struct code_object *object;
	Elf *elf;
	struct code_debug_info debug_info;
	struct byte_buffer strings; /* the name of the symbol */
	struct byte_buffer names;   /* of the sections */
	uint32_t name_offsets[NR_SECTIONS];
	Elf64_Sym symbols[2]; /* the first one is nothing */
};

/* One section; what there is none of is an empty one, so that their numbers are the same. */
static Elf64_Shdr *add_section(struct writing *writing, enum section section, uint32_t type,
			       const void *bytes, size_t nr_bytes)
{
	Elf_Scn *added = elf_newscn(writing->elf);
	Elf_Data *data = added ? elf_newdata(added) : NULL;
	Elf64_Shdr *header = added ? elf64_getshdr(added) : NULL;

	if (!data || !header)
		return NULL;
	data->d_buf = (void *)bytes;
	data->d_size = nr_bytes;
	data->d_type = type == SHT_SYMTAB ? ELF_T_SYM : ELF_T_BYTE;
	data->d_align = section == SECTION_TEXT ? 16 : 8;
	data->d_version = EV_CURRENT;
	header->sh_name = writing->name_offsets[section];
	header->sh_type = type;
	header->sh_addralign = 1;
	return header;
}

static bool add_loaded(struct writing *writing)
{
	const struct code_object *object = writing->object;
	Elf64_Shdr *text =
		add_section(writing, SECTION_TEXT, SHT_PROGBITS, object->code, object->code_bytes);
	Elf64_Shdr *unwind = add_section(writing, SECTION_EH_FRAME, SHT_PROGBITS, object->unwind,
					 object->unwind_bytes);

	if (!text || !unwind)
		return false;
	text->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	text->sh_addr = object->addr;
	unwind->sh_flags = object->unwind ? SHF_ALLOC : 0;
	unwind->sh_addr = object->unwind ? object->unwind_addr : 0;
	return true;
}

static bool add_debug_info(struct writing *writing)
{
	const struct {
		enum section section;
		const struct byte_buffer *bytes;
	} sections[] = {
		{SECTION_DEBUG_ABBREV, &writing->debug_info.abbrev},
		{SECTION_DEBUG_INFO, &writing->debug_info.info},
		{SECTION_DEBUG_ARANGES, &writing->debug_info.aranges},
		{SECTION_DEBUG_LINE, &writing->debug_info.line},
	};

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (!add_section(writing, sections[i].section, SHT_PROGBITS,
				 sections[i].bytes->bytes, sections[i].bytes->nr))
			return false;
	return true;
}

static bool add_symbol(struct writing *writing)
{
	const struct code_object *object = writing->object;
	Elf64_Shdr *symbols = add_section(writing, SECTION_SYMTAB, SHT_SYMTAB, writing->symbols,
					  sizeof(writing->symbols));

	if (!symbols)
		return false;
	symbols->sh_link = SECTION_STRTAB;
	symbols->sh_info = 1; /* the first one that is global */
	symbols->sh_entsize = sizeof(writing->symbols[0]);
	writing->symbols[1] = (Elf64_Sym){
		.st_name = 1,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = SECTION_TEXT,
		.st_value = object->addr,
		.st_size = object->code_bytes,
	};
	return add_section(writing, SECTION_STRTAB, SHT_STRTAB, writing->strings.bytes,
			   writing->strings.nr) &&
	       add_section(writing, SECTION_SHSTRTAB, SHT_STRTAB, writing->names.bytes,
			   writing->names.nr);
}

static bool add_header(struct writing *writing)
{
	Elf64_Ehdr *header = elf64_newehdr(writing->elf);

	if (!header)
		return false;
	header->e_ident[EI_DATA] = writing->object->is_big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	header->e_type = ET_DYN; /* as the images of perf and CPython: its addresses are given */
	header->e_machine = writing->object->elf_machine;
	header->e_version = EV_CURRENT;
	header->e_shstrndx = SECTION_SHSTRTAB;
	return true;
}

/* The segment that says where the code is in memory, for readers that look at those. */
static bool add_segment(struct writing *writing, size_t section, Elf64_Phdr *segment)
{
	Elf_Scn *found = elf_getscn(writing->elf, section);
	const Elf64_Shdr *header = found ? elf64_getshdr(found) : NULL;

	if (!header)
		return false;
	*segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = section == SECTION_TEXT ? PF_R | PF_X : PF_R,
		.p_offset = header->sh_offset,
		.p_vaddr = header->sh_addr,
		.p_paddr = header->sh_addr,
		.p_filesz = header->sh_size,
		.p_memsz = header->sh_size,
		.p_align = 1,
	};
	return true;
}

static bool add_all(struct writing *writing)
{
	const size_t nr_segments = writing->object->unwind ? 2 : 1;
	Elf64_Phdr *segments;

	if (!add_header(writing))
		return false;
	segments = elf64_newphdr(writing->elf, nr_segments);
	if (!segments || !add_loaded(writing) || !add_debug_info(writing) || !add_symbol(writing))
		return false;
	/* Now it is known where everything will be in the file. */
	if (elf_update(writing->elf, ELF_C_NULL) < 0)
		return false;
	for (size_t i = 0; i < nr_segments; i++)
		if (!add_segment(writing, SECTION_TEXT + i, &segments[i]))
			return false;
	return elf_update(writing->elf, ELF_C_WRITE) >= 0;
}

/* An error of libelf, as far as it was one of the file's. */
static int write_error(void)
{
	return errno == ENOMEM ? -ENOMEM : errno ? -errno : -EIO;
}

static void append_string(struct byte_buffer *buffer, const char *string)
{
	byte_buffer_append(buffer, string, (uint32_t)strlen(string) + 1);
}

static bool make_parts(struct writing *writing)
{
	const struct code_object *object = writing->object;

	append_string(&writing->strings, "");
	append_string(&writing->strings, object->name);
	for (uint32_t i = 0; i < NR_SECTIONS; i++) {
		writing->name_offsets[i] = writing->names.nr;
		append_string(&writing->names, section_names[i]);
	}
	if (object->nr_lines)
		code_debug_info_make(object, &writing->debug_info);
	return !writing->strings.failed && !writing->names.failed &&
	       !code_debug_info_failed(&writing->debug_info);
}

int code_object_write(const struct code_object *object, int fd)
{
	struct writing writing = {.object = object};
	int err = -ENOMEM;

	if (make_parts(&writing)) {
		errno = 0;
		(void)elf_version(EV_CURRENT);
		writing.elf = elf_begin(fd, ELF_C_WRITE, NULL);
		err = writing.elf && add_all(&writing) ? 0 : write_error();
		(void)elf_end(writing.elf);
	}
	code_debug_info_done(&writing.debug_info);
	byte_buffer_done(&writing.strings);
	byte_buffer_done(&writing.names);
	return err;
}
