/* SPDX-License-Identifier: MIT */
#include "output/dump/code_debug_info.h"

#include <dwarf.h>
#include <string.h>

enum { DWARF_VERSION = 4, ARANGES_VERSION = 2, ADDRESS_BYTES = 8 };

/* Abbreviations: the unit, and the function in it. */
enum { ABBREV_UNIT = 1, ABBREV_FUNCTION = 2 };

/* Of a line table without special opcodes these mean nothing, but may not be zero. */
enum { LINE_BASE = 1, LINE_RANGE = 1, OPCODE_BASE = 13 };

/* A number of so many bytes, in the order of the object. */
static void put(struct byte_buffer *buffer, const struct code_object *object, uint64_t number,
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

/* A number with a sign, as DWARF has it. */
static void put_signed(struct byte_buffer *buffer, int64_t number)
{
	while (number < -64 || number >= 64) {
		byte_buffer_fixed(buffer, (uint64_t)(number & 0x7f) | 0x80, 1);
		number >>= 7;
	}
	byte_buffer_fixed(buffer, (uint64_t)number & 0x7f, 1);
}

/* Leave room for the length of what follows, and write it there when that is whole. */
static uint32_t begin_length(struct byte_buffer *buffer)
{
	byte_buffer_fixed(buffer, 0, 4);
	return buffer->nr;
}

static void end_length(struct byte_buffer *buffer, const struct code_object *object, uint32_t begin)
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

static void make_info(const struct code_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, DWARF_VERSION, 2);
	put(buffer, object, 0, 4); /* in .debug_abbrev */
	byte_buffer_uint(buffer, ADDRESS_BYTES);
	byte_buffer_uint(buffer, ABBREV_UNIT);
	put_string(buffer, "pysample");
	put_string(buffer, object->lines[0].path);
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, 8);
	put(buffer, object, 0, 4); /* in .debug_line */
	byte_buffer_uint(buffer, ABBREV_FUNCTION);
	put_string(buffer, object->name);
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, 8);
	byte_buffer_uint(buffer, 0);
	end_length(buffer, object, begin);
}

/* Which unit the code is of: libdw looks for it here. */
static void make_aranges(const struct code_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, ARANGES_VERSION, 2);
	put(buffer, object, 0, 4); /* in .debug_info */
	put(buffer, object, ADDRESS_BYTES, 1);
	put(buffer, object, 0, 1); /* segments have no names */
	put(buffer, object, 0, 4); /* pairs are aligned */
	put(buffer, object, object->addr, ADDRESS_BYTES);
	put(buffer, object, object->code_bytes, ADDRESS_BYTES);
	put(buffer, object, 0, ADDRESS_BYTES); /* the last pair */
	put(buffer, object, 0, ADDRESS_BYTES);
	end_length(buffer, object, begin);
}

/* Lines. */

/* Whether that line begins a file that the line before is not of: they have one entry. */
static bool begins_file(const struct code_object *object, size_t line)
{
	return line == 0 || strcmp(object->lines[line].path, object->lines[line - 1].path) != 0;
}

static void put_line_header(const struct code_object *object, struct byte_buffer *buffer)
{
	/* How many operands the standard opcodes have. */
	static const uint8_t lengths[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, 1, 1); /* the least length of an instruction */
	put(buffer, object, 1, 1); /* operations of one */
	put(buffer, object, 1, 1); /* each line is where a statement begins */
	put(buffer, object, LINE_BASE, 1);
	put(buffer, object, LINE_RANGE, 1);
	put(buffer, object, OPCODE_BASE, 1);
	byte_buffer_append(buffer, lengths, sizeof(lengths));
	byte_buffer_uint(buffer, 0); /* no folders */
	for (size_t i = 0; i < object->nr_lines; i++)
		if (begins_file(object, i)) {
			put_string(buffer, object->lines[i].path);
			byte_buffer_append(buffer, "\0\0", 3); /* folder, time, length */
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

static void put_line_program(const struct code_object *object, struct byte_buffer *buffer)
{
	uint64_t addr = object->addr;
	uint64_t line = 1; /* the state that a program begins with */
	uint64_t file = 0;

	put_extended(buffer, DW_LNE_set_address, ADDRESS_BYTES);
	put(buffer, object, addr, ADDRESS_BYTES);
	for (size_t i = 0; i < object->nr_lines; i++) {
		const struct code_line *entry = &object->lines[i];

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

static void make_line(const struct code_object *object, struct byte_buffer *buffer)
{
	const uint32_t begin = begin_length(buffer);

	put(buffer, object, DWARF_VERSION, 2);
	put_line_header(object, buffer);
	put_line_program(object, buffer);
	end_length(buffer, object, begin);
}

void code_debug_info_make(const struct code_object *object, struct code_debug_info *sections)
{
	make_abbrev(&sections->abbrev);
	make_info(object, &sections->info);
	make_aranges(object, &sections->aranges);
	make_line(object, &sections->line);
}

bool code_debug_info_failed(const struct code_debug_info *sections)
{
	return sections->abbrev.failed || sections->info.failed || sections->aranges.failed ||
	       sections->line.failed;
}

void code_debug_info_done(struct code_debug_info *sections)
{
	byte_buffer_done(&sections->abbrev);
	byte_buffer_done(&sections->info);
	byte_buffer_done(&sections->aranges);
	byte_buffer_done(&sections->line);
}
