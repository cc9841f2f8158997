/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jitdump_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "symbols/unwind/cfi.h"

/* V8 counts line addresses from the ELF header that it expects perf to put before the code. */
#define ELF_HEADER_BYTES 0x40u

/* Stands for the path of the line before. */
static const char same_path[] = "\xff";

/*
 * Read a complete record. *ret_bytes is allocated; release it with free(). Returns 0; -ENOENT if
 * it is not the expected one; -ENOMEM.
 */
static int read_record(const struct jitdump *dump, uint64_t offset, enum jitdump_id id,
		       uint8_t **ret_bytes, struct jitdump_record *ret_record)
{
	const bool is_big_endian = jitdump_header(dump)->is_big_endian;
	cleanup_free uint8_t *bytes = malloc(JITDUMP_DECODE_BYTES);
	size_t nr;
	uint8_t *grown;

	if (!bytes)
		return -ENOMEM;
	nr = jitdump_read_bytes(dump, offset, bytes, JITDUMP_DECODE_BYTES);
	if (jitdump_record_decode(bytes, nr, is_big_endian, ret_record) || ret_record->id != id)
		return -ENOENT;
	grown = realloc(bytes, ret_record->nr_bytes);
	if (!grown)
		return -ENOMEM;
	bytes = grown;
	nr = jitdump_read_bytes(dump, offset, bytes, ret_record->nr_bytes);
	if (nr < ret_record->nr_bytes ||
	    jitdump_record_decode(bytes, nr, is_big_endian, ret_record) || ret_record->id != id)
		return -ENOENT;
	*ret_bytes = take_ptr(bytes);
	return 0;
}

/* Read the instructions, and the address at which they were first. */
static int read_code(const struct jitdump *dump, const struct jit_code *code, struct jit_body *body,
		     remote_addr *ret_load_addr)
{
	struct jitdump_record record;
	cleanup_free uint8_t *bytes = NULL;
	int err = read_record(dump, code->code_place, JITDUMP_LOAD, &bytes, &record);

	if (err)
		return err;
	if (record.code_index != code->code_index || record.code_bytes != code->nr_bytes ||
	    strcmp(record.name, code->name) != 0)
		return -ENOENT;
	memmove(bytes, bytes + record.code_offset, code->nr_bytes);
	body->code = take_ptr(bytes);
	*ret_load_addr = record.code_addr;
	return 0;
}

/* Lines. */

/* Decode the lines of a record. Returns false if they are damaged. */
static bool decode_lines(struct jit_body *body, uint64_t nr_lines, uint32_t nr_bytes)
{
	const uint8_t *bytes = body->lines_bytes;
	const char *path = "";
	size_t offset = JITDUMP_LINES_OFFSET;

	for (uint64_t i = 0; i < nr_lines; i++) {
		struct jit_line *line = &body->lines[i];
		const char *name;
		size_t length;

		if (nr_bytes - offset < JITDUMP_MIN_LINE_BYTES)
			return false;
		line->addr = jitdump_u64(bytes, offset, body->is_big_endian);
		line->line = jitdump_u32(bytes, offset + 8, body->is_big_endian);
		line->discriminator = jitdump_u32(bytes, offset + 12, body->is_big_endian);
		offset += JITDUMP_MIN_LINE_BYTES - 1;
		name = (const char *)bytes + offset;
		length = strnlen(name, nr_bytes - offset);
		if (length == nr_bytes - offset)
			return false;
		offset += length + 1;
		path = strcmp(name, same_path) == 0 ? path : name;
		line->path = path;
	}
	return true;
}

/* Whether all lines are in the code once bias is subtracted from their addresses. */
static bool are_inside(const struct jit_body *body, remote_addr load_addr, uint64_t nr_bytes,
		       uint64_t bias)
{
	for (uint32_t i = 0; i < body->nr_lines; i++)
		if (body->lines[i].addr - bias - load_addr > nr_bytes)
			return false;
	return true;
}

static void drop_lines(struct jit_body *body)
{
	free(body->lines);
	free(body->lines_bytes);
	body->lines = NULL;
	body->lines_bytes = NULL;
	body->nr_lines = 0;
}

/* Convert the addresses of lines to those of the code. */
static void place_lines(const struct jit_code *code, remote_addr load_addr, struct jit_body *body)
{
	uint64_t bias = 0;

	if (!are_inside(body, load_addr, code->nr_bytes, 0))
		bias = ELF_HEADER_BYTES;
	if (!are_inside(body, load_addr, code->nr_bytes, bias))
		drop_lines(body);
	for (uint32_t i = 0; i < body->nr_lines; i++)
		body->lines[i].addr += code->start_addr - load_addr - bias;
}

static int read_lines(const struct jitdump *dump, const struct jit_code *code,
		      remote_addr load_addr, struct jit_body *body)
{
	struct jitdump_record record;
	int err = read_record(dump, code->lines_place, JITDUMP_DEBUG_INFO, &body->lines_bytes,
			      &record);

	if (err == -ENOENT || (!err && record.code_addr != load_addr)) {
		drop_lines(body);
		return 0;
	}
	if (err)
		return err;
	body->lines = calloc(record.nr_lines ? record.nr_lines : 1, sizeof(*body->lines));
	if (!body->lines)
		return -ENOMEM;
	body->nr_lines = (uint32_t)record.nr_lines; /* bounded by the record's size */
	if (decode_lines(body, record.nr_lines, record.nr_bytes))
		place_lines(code, load_addr, body);
	else
		drop_lines(body);
	return 0;
}

/* Unwind information. */

/*
 * Locate .eh_frame in the record and its vaddr. Returns false if no order of the sections fits
 * the code.
 */
static bool find_eh_frame(const uint8_t *bytes, const struct jitdump_record *record,
			  const struct jit_code *code, struct cfi_section *ret_section)
{
	const uint64_t vaddr = (code->start_addr + code->nr_bytes + 7) & ~UINT64_C(7);
	const uint8_t *data = bytes + JITDUMP_UNWIND_OFFSET;
	const struct {
		uint64_t offset, vaddr;
	} orders[] = {
		{0, vaddr},						    /* as perf writes it */
		{record->eh_header_bytes, vaddr + record->eh_header_bytes}, /* as specified */
		{record->eh_header_bytes, vaddr},
	};

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		*ret_section = (struct cfi_section){
			.bytes = data + orders[i].offset,
			.nr_bytes = record->unwind_bytes - record->eh_header_bytes,
			.vaddr = orders[i].vaddr,
			.kind = CFI_EH_FRAME,
		};
		if (jit_unwind_is_of(ret_section, code))
			return true;
	}
	return false;
}

static int read_unwind(const struct jitdump *dump, const struct jit_code *code,
		       struct jit_body *body)
{
	struct jitdump_record record;
	struct cfi_section section;
	cleanup_free uint8_t *bytes = NULL;
	int err = read_record(dump, code->unwind_place, JITDUMP_UNWINDING_INFO, &bytes, &record);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (!find_eh_frame(bytes, &record, code, &section))
		return 0;
	body->unwind_vaddr = section.vaddr;
	body->unwind_bytes = section.nr_bytes;
	memmove(bytes, section.bytes, section.nr_bytes);
	body->unwind = take_ptr(bytes);
	return 0;
}

int jitdump_read_body(const struct jitdump *dump, const struct jit_code *code,
		      struct jit_body *ret_body)
{
	const struct jitdump_header *header = jitdump_header(dump);
	struct jit_body body = {0};
	remote_addr load_addr;
	int err;

	if (!header)
		return -ENOENT;
	body.elf_machine = header->elf_machine;
	body.is_big_endian = header->is_big_endian;
	err = read_code(dump, code, &body, &load_addr);
	if (!err && code->lines_place)
		err = read_lines(dump, code, load_addr, &body);
	/* The unwinder supports little endian only. */
	if (!err && code->unwind_place && !body.is_big_endian)
		err = read_unwind(dump, code, &body);
	if (err)
		jit_body_done(&body);
	else
		*ret_body = body;
	return err;
}
