/* SPDX-License-Identifier: MIT */
#include "output/dump/jit_object.h"

#include <dwarf.h>
#include <errno.h>
#include <libelf.h>
#include <string.h>

#include "output/encoding/byte_buffer.h"

/*
 * DWARF 4 line information for one function, with as few entries as debuggers accept: a unit, the
 * function and its line table.
 *
 * Source: DWARF 4 §2.17 (ranges), §3.1 (units), §6.1.2 (.debug_aranges), §6.2 (line tables), §7
 * (encodings).
 */

/* The DWARF sections. */
struct debug_info {
	struct byte_buffer abbrev;
	struct byte_buffer info;
	struct byte_buffer aranges;
	struct byte_buffer line;
};

enum { DWARF_VERSION = 4, ARANGES_VERSION = 2, ADDRESS_BYTES = 8 };

/* Abbreviation codes: the unit, and the function in it. */
enum { ABBREV_UNIT = 1, ABBREV_FUNCTION = 2 };

/* Unused without special opcodes, but must not be zero. */
enum { LINE_BASE = 1, LINE_RANGE = 1, OPCODE_BASE = 13 };

/* Append a number of nr bytes in the object's byte order. */
static void put(struct byte_buffer *buffer, const struct jit_object *object, uint64_t number,
		uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const uint32_t shift = 8 * (object->is_big_endian ? nr - 1 - i : i);

		byte_buffer_fixed(buffer, number >> shift & 0xff, 1);
	}
}

static void put_string(struct byte_buffer *buffer, const char *string)
{
	byte_buffer_append(buffer, string, (uint32_t)strlen(string) + 1);
}

/* Append a signed number as SLEB128. */
static void put_signed(struct byte_buffer *buffer, int64_t number)
{
	while (number < -64 || number >= 64) {
		byte_buffer_fixed(buffer, (uint64_t)(number & 0x7f) | 0x80, 1);
		number >>= 7;
	}
	byte_buffer_fixed(buffer, (uint64_t)number & 0x7f, 1);
}

/* Reserve the length of what follows, and fill it in once that is complete. */
static uint32_t begin_length(struct byte_buffer *buffer)
{
	byte_buffer_fixed(buffer, 0, 4);
	return buffer->nr;
}

static void end_length(struct byte_buffer *buffer, const struct jit_object *object, uint32_t begin)
{
	const uint32_t end = buffer->nr;

	if (buffer->failed)
		return;
	buffer->nr = begin - 4;
	put(buffer, object, end - begin, 4);
	buffer->nr = end;
}

static void put_attributes(struct byte_buffer *buffer, const uint16_t (*attributes)[2], size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		byte_buffer_uint(buffer, attributes[i][0]);
		byte_buffer_uint(buffer, attributes[i][1]);
	}
	byte_buffer_append(buffer, "\0", 2);
}

static void make_abbrev(struct byte_buffer *buffer)
{
	static const uint16_t unit[][2] = {
		{DW_AT_producer, DW_FORM_string},      {DW_AT_name, DW_FORM_string},
		{DW_AT_low_pc, DW_FORM_addr},	       {DW_AT_high_pc, DW_FORM_data8},
		{DW_AT_stmt_list, DW_FORM_sec_offset},
	};
	static const uint16_t function[][2] = {
		{DW_AT_name, DW_FORM_string},
		{DW_AT_low_pc, DW_FORM_addr},
		{DW_AT_high_pc, DW_FORM_data8},
		{DW_AT_external, DW_FORM_flag_present},
	};

	byte_buffer_uint(buffer, ABBREV_UNIT);
	byte_buffer_uint(buffer, DW_TAG_compile_unit);
	byte_buffer_uint(buffer, DW_CHILDREN_yes);
	put_attributes(buffer, unit, sizeof(unit) / sizeof(unit[0]));
	byte_buffer_uint(buffer, ABBREV_FUNCTION);
	byte_buffer_uint(buffer, DW_TAG_subprogram);
	byte_buffer_uint(buffer, DW_CHILDREN_no);
	put_attributes(buffer, function, sizeof(function) / sizeof(function[0]));
	byte_buffer_uint(buffer, 0);
}

static void make_info(const struct jit_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, DWARF_VERSION, 2);
	put(buffer, object, 0, 4); /* offset in .debug_abbrev */
	byte_buffer_uint(buffer, ADDRESS_BYTES);
	byte_buffer_uint(buffer, ABBREV_UNIT);
	put_string(buffer, "pysample");
	put_string(buffer, object->lines[0].path);
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, 8);
	put(buffer, object, 0, 4); /* offset in .debug_line */
	byte_buffer_uint(buffer, ABBREV_FUNCTION);
	put_string(buffer, object->name);
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, 8);
	byte_buffer_uint(buffer, 0);
	end_length(buffer, object, begin);
}

/* Map the code's addresses to the unit. libdw looks here. */
static void make_aranges(const struct jit_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, ARANGES_VERSION, 2);
	put(buffer, object, 0, 4); /* offset in .debug_info */
	put(buffer, object, ADDRESS_BYTES, 1);
	put(buffer, object, 0, 1); /* size of a segment selector */
	put(buffer, object, 0, 4); /* padding: pairs are aligned */
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, ADDRESS_BYTES);
	put(buffer, object, 0, ADDRESS_BYTES); /* end of the list */
	put(buffer, object, 0, ADDRESS_BYTES);
	end_length(buffer, object, begin);
}

/* Lines. */

/* Whether a line begins a new file. Consecutive lines of one file share an entry. */
static bool begins_file(const struct jit_object *object, size_t line)
{
	return line == 0 || strcmp(object->lines[line].path, object->lines[line - 1].path) != 0;
}

static void put_line_header(const struct jit_object *object, struct byte_buffer *buffer)
{
	/* Number of operands of each standard opcode. */
	static const uint8_t lengths[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, 1, 1); /* minimum instruction length */
	put(buffer, object, 1, 1); /* maximum operations per instruction */
	put(buffer, object, 1, 1); /* is_stmt by default */
	put(buffer, object, LINE_BASE, 1);
	put(buffer, object, LINE_RANGE, 1);
	put(buffer, object, OPCODE_BASE, 1);
	byte_buffer_append(buffer, lengths, sizeof(lengths));
	byte_buffer_uint(buffer, 0); /* no directories */
	for (size_t i = 0; i < object->nr_lines; i++)
		if (begins_file(object, i)) {
			put_string(buffer, object->lines[i].path);
			byte_buffer_append(buffer, "\0\0", 3); /* directory, time, length */
		}
	byte_buffer_uint(buffer, 0);
	end_length(buffer, object, begin);
}

static void put_extended(struct byte_buffer *buffer, uint8_t opcode, uint32_t operand_bytes)
{
	byte_buffer_uint(buffer, 0);
	byte_buffer_uint(buffer, 1 + operand_bytes);
	byte_buffer_uint(buffer, opcode);
}

static void put_advance_pc(struct byte_buffer *buffer, uint64_t nr_bytes)
{
	if (!nr_bytes)
		return;
	byte_buffer_uint(buffer, DW_LNS_advance_pc);
	byte_buffer_uint(buffer, nr_bytes);
}

static void put_discriminator(struct byte_buffer *buffer, uint32_t discriminator)
{
	struct byte_buffer number = {0};

	if (!discriminator)
		return;
	byte_buffer_uint(&number, discriminator);
	put_extended(buffer, DW_LNE_set_discriminator, number.nr);
	byte_buffer_append(buffer, number.bytes, number.nr);
	buffer->failed |= number.failed;
	byte_buffer_done(&number);
}

static void put_line_program(const struct jit_object *object, struct byte_buffer *buffer)
{
	uint64_t addr = object->addr;
	uint64_t line = 1; /* initial state of a line program */
	uint64_t file = 0;

	put_extended(buffer, DW_LNE_set_address, ADDRESS_BYTES);
	put(buffer, object, addr, ADDRESS_BYTES);
	for (size_t i = 0; i < object->nr_lines; i++) {
		const struct jit_object_line *entry = &object->lines[i];

		put_advance_pc(buffer, entry->addr - addr);
		if (begins_file(object, i)) {
			byte_buffer_uint(buffer, DW_LNS_set_file);
			byte_buffer_uint(buffer, ++file);
		}
		byte_buffer_uint(buffer, DW_LNS_advance_line);
		put_signed(buffer, (int64_t)entry->line - (int64_t)line);
		put_discriminator(buffer, entry->discriminator);
		byte_buffer_uint(buffer, DW_LNS_copy);
		addr = entry->addr;
		line = entry->line;
	}
	put_advance_pc(buffer, object->addr + object->code_bytes - addr);
	put_extended(buffer, DW_LNE_end_sequence, 0);
}

static void make_line(const struct jit_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, DWARF_VERSION, 2);
	put_line_header(object, buffer);
	put_line_program(object, buffer);
	end_length(buffer, object, begin);
}

/* Fill the empty sections for an object with lines. Out of memory shows in their failed flags. */
static void debug_info_make(const struct jit_object *object, struct debug_info *sections)
{
	make_abbrev(&sections->abbrev);
	make_info(object, &sections->info);
	make_aranges(object, &sections->aranges);
	make_line(object, &sections->line);
}

static bool debug_info_failed(const struct debug_info *sections)
{
	return sections->abbrev.failed || sections->info.failed || sections->aranges.failed ||
	       sections->line.failed;
}

static void debug_info_done(struct debug_info *sections)
{
	byte_buffer_done(&sections->abbrev);
	byte_buffer_done(&sections->info);
	byte_buffer_done(&sections->aranges);
	byte_buffer_done(&sections->line);
}

/* The sections, in file order. */
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

/* State of a write. libelf keeps pointers to the contents of sections until it has written them. */
struct writing {
	const struct jit_object *object;
	Elf *elf;
	struct debug_info debug_info;
	struct byte_buffer strings; /* with the symbol's name */
	struct byte_buffer names;   /* section names */
	uint32_t name_offsets[NR_SECTIONS];
	Elf64_Sym symbols[2]; /* the first one is the null symbol */
};

/*
 * Add a section. Sections without contents are added empty, so that section numbers are constant.
 */
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
	const struct jit_object *object = writing->object;
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
	const struct jit_object *object = writing->object;
	Elf64_Shdr *symbols = add_section(writing, SECTION_SYMTAB, SHT_SYMTAB, writing->symbols,
					  sizeof(writing->symbols));

	if (!symbols)
		return false;
	symbols->sh_link = SECTION_STRTAB;
	symbols->sh_info = 1; /* index of the first global symbol */
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
	header->e_type = ET_DYN; /* as in perf's and CPython's images; addresses are absolute */
	header->e_machine = writing->object->elf_machine;
	header->e_version = EV_CURRENT;
	header->e_shstrndx = SECTION_SHSTRTAB;
	return true;
}

/* Fill in the segment of a section, for readers that use segments. */
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
	/* Lay out the file: segments need the offsets. */
	if (elf_update(writing->elf, ELF_C_NULL) < 0)
		return false;
	for (size_t i = 0; i < nr_segments; i++)
		if (!add_segment(writing, SECTION_TEXT + i, &segments[i]))
			return false;
	return elf_update(writing->elf, ELF_C_WRITE) >= 0;
}

/* Returns the error of the last call of libelf: errno, or -EIO if that is not set. */
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
	const struct jit_object *object = writing->object;

	append_string(&writing->strings, "");
	append_string(&writing->strings, object->name);
	for (uint32_t i = 0; i < NR_SECTIONS; i++) {
		writing->name_offsets[i] = writing->names.nr;
		append_string(&writing->names, section_names[i]);
	}
	if (object->nr_lines)
		debug_info_make(object, &writing->debug_info);
	return !writing->strings.failed && !writing->names.failed &&
	       !debug_info_failed(&writing->debug_info);
}

int jit_object_write(const struct jit_object *object, int fd)
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
	debug_info_done(&writing.debug_info);
	byte_buffer_done(&writing.strings);
	byte_buffer_done(&writing.names);
	return err;
}
