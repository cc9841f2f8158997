/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

/* DW_EH_PE_*: the lower four bits are the form, the next three what the number is relative to. */
#define ENCODING_FORM	  0x0f
#define ENCODING_RELATIVE 0x70

/* LENGTH_64 announces a 64-bit length; the other values from LENGTH_RESERVED on are reserved. */
#define LENGTH_64	0xffffffffu
#define LENGTH_RESERVED 0xfffffff0u

/* The newest CIE version: DWARF 4 and 5. */
#define VERSION_MAX 4

/* An augmentation has about four letters and a NUL. */
#define AUGMENTATION_MAX_BYTES 16

/* Pointers. */

static uint64_t pointer_number(struct byte_cursor *cursor, uint8_t form)
{
	switch (form) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return byte_cursor_fixed(cursor, 8);
	case DW_EH_PE_uleb128:
		return byte_cursor_uint(cursor);
	case DW_EH_PE_sleb128:
		return (uint64_t)byte_cursor_signed_leb(cursor);
	case DW_EH_PE_udata2:
		return byte_cursor_fixed(cursor, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)byte_cursor_fixed(cursor, 2);
	case DW_EH_PE_udata4:
		return byte_cursor_fixed(cursor, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)byte_cursor_fixed(cursor, 4);
	default:
		cursor->is_bad = true;
		return 0;
	}
}

uint64_t cfi_pointer(const struct cfi_section *section, struct byte_cursor *cursor,
		     uint8_t encoding)
{
	const uint64_t here_vaddr = section->vaddr + (uint64_t)(cursor->at - section->bytes);
	const uint64_t number = pointer_number(cursor, encoding & ENCODING_FORM);

	/* Sums wrap modulo 2^64: a relative number may be negative. */
	switch (encoding & (ENCODING_RELATIVE | DW_EH_PE_indirect)) {
	case DW_EH_PE_absptr:
		return number;
	case DW_EH_PE_pcrel:
		return number + here_vaddr;
	case DW_EH_PE_datarel:
		return number + section->data_vaddr;
	default:
		cursor->is_bad = true;
		return 0;
	}
}

/* Entries. */

/* An entry without its length and id. */
struct entry {
	struct byte_cursor body;
	uint64_t common_offset; /* of its CIE; for an FDE only */
	uint64_t next_offset;
	bool is_common;
};

static struct byte_cursor cursor_at(const struct cfi_section *section, uint64_t offset)
{
	struct byte_cursor cursor = {.at = section->bytes,
				     .end = section->bytes + section->nr_bytes};

	(void)byte_cursor_split(&cursor, offset);
	return cursor;
}

/*
 * Split an entry into its parts. Returns 0, or -ENOENT if it is the last one or the next one
 * cannot be located. A common_offset outside the section is detected when the CIE is read.
 */
static int read_entry(const struct cfi_section *section, uint64_t offset, struct entry *ret_entry)
{
	struct byte_cursor cursor = cursor_at(section, offset);
	uint32_t nr_id_bytes = 4; /* also in the 64-bit entries of .eh_frame */
	uint64_t length = byte_cursor_fixed(&cursor, 4);
	struct entry entry;
	uint64_t id_offset;
	uint64_t id;

	if (length == LENGTH_64) {
		length = byte_cursor_fixed(&cursor, 8);
		nr_id_bytes = section->kind == CFI_DEBUG_FRAME ? 8 : 4;
	} else if (length >= LENGTH_RESERVED) {
		return -ENOENT;
	}
	id_offset = (uint64_t)(cursor.at - section->bytes);
	entry.body = byte_cursor_split(&cursor, length);
	entry.next_offset = (uint64_t)(cursor.at - section->bytes);
	if (length == 0 || cursor.is_bad)
		return -ENOENT;
	id = byte_cursor_fixed(&entry.body, nr_id_bytes);
	if (section->kind == CFI_EH_FRAME) {
		entry.is_common = id == 0;
		entry.common_offset = id_offset - id;
	} else {
		entry.is_common = id == (nr_id_bytes == 8 ? UINT64_MAX : UINT32_MAX);
		entry.common_offset = id;
	}
	*ret_entry = entry;
	return 0;
}

/*
 * Read the augmentation data that the letters after the "z" announce. An unknown letter ends the
 * reading, as the data has a length. Returns whether the data was long enough.
 */
static bool read_augmentation(const struct cfi_section *section, const char *letters,
			      struct byte_cursor data, struct cfi_common *common)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'L': /* encoding of the pointer to language-specific data */
			(void)byte_cursor_fixed(&data, 1);
			break;
		case 'P': { /* the personality routine */
			uint8_t encoding = (uint8_t)byte_cursor_fixed(&data, 1);

			(void)cfi_pointer(section, &data, encoding & ENCODING_FORM);
			break;
		}
		case 'R':
			common->pointer_encoding = (uint8_t)byte_cursor_fixed(&data, 1);
			break;
		case 'S':
			common->is_signal_frame = true;
			break;
		case 'B': /* Arm: return addresses are signed with key B */
		case 'G': /* Arm: stack memory is tagged */
			break;
		default:
			return !data.is_bad;
		}
	}
	return !data.is_bad;
}

/* Read the string at the cursor. NULL if it does not end within AUGMENTATION_MAX_BYTES. */
static const char *read_string(struct byte_cursor *cursor)
{
	const char *string = (const char *)cursor->at;
	const size_t nr_bytes = (size_t)(cursor->end - cursor->at);
	const uint8_t *end =
		memchr(cursor->at, '\0',
		       nr_bytes < AUGMENTATION_MAX_BYTES ? nr_bytes : AUGMENTATION_MAX_BYTES);

	if (!end)
		return NULL;
	cursor->at = end + 1;
	return string;
}

/* Version 4 has the sizes of an address and of a segment selector: they must be 8 and 0. */
static bool check_sizes(struct byte_cursor *body, uint64_t version)
{
	const uint64_t sizes = version < 4 ? sizeof(uint64_t) : byte_cursor_fixed(body, 2);

	return sizes == sizeof(uint64_t);
}

/* Returns 0, or -EBADMSG, also for what is unsupported. */
static int read_common(const struct cfi_section *section, uint64_t offset,
		       struct cfi_common *ret_common)
{
	struct cfi_common common = {.offset = offset};
	struct byte_cursor *body;
	const char *augmentation;
	struct entry entry;
	uint64_t version;

	if (read_entry(section, offset, &entry) || !entry.is_common)
		return -EBADMSG;
	body = &entry.body;
	version = byte_cursor_fixed(body, 1);
	augmentation = read_string(body);
	if (version == 0 || version > VERSION_MAX || !augmentation || !check_sizes(body, version))
		return -EBADMSG;
	common.code_alignment = byte_cursor_uint(body);
	common.data_alignment = byte_cursor_signed_leb(body);
	common.return_register =
		(uint32_t)(version == 1 ? byte_cursor_fixed(body, 1) : byte_cursor_uint(body));
	common.has_augmentation = augmentation[0] == 'z';
	if (common.has_augmentation) {
		const uint64_t nr_bytes = byte_cursor_uint(body);

		if (!read_augmentation(section, augmentation + 1, byte_cursor_split(body, nr_bytes),
				       &common))
			return -EBADMSG;
	} else if (augmentation[0]) {
		return -EBADMSG;
	}
	if (body->is_bad || common.code_alignment == 0)
		return -EBADMSG;
	common.program = *body;
	*ret_common = common;
	return 0;
}

/* Returns 0, or -EBADMSG, also for an empty function, whose code the linker has removed. */
static int read_function(const struct cfi_section *section, const struct entry *entry,
			 struct cfi_function *function)
{
	const uint8_t encoding = function->common.pointer_encoding;
	struct byte_cursor body = entry->body;
	uint64_t end;

	function->start_vaddr = cfi_pointer(section, &body, encoding);
	function->nr_bytes = pointer_number(&body, encoding & ENCODING_FORM);
	if (function->common.has_augmentation) {
		const uint64_t nr_bytes = byte_cursor_uint(&body);

		(void)byte_cursor_split(&body, nr_bytes);
	}
	if (body.is_bad || function->nr_bytes == 0 ||
	    __builtin_add_overflow(function->start_vaddr, function->nr_bytes, &end))
		return -EBADMSG;
	function->program = body;
	return 0;
}

int cfi_next_function(const struct cfi_section *section, uint64_t offset,
		      const struct cfi_common *last, struct cfi_function *ret_function,
		      uint64_t *ret_next_offset)
{
	struct cfi_function function = {.common = *last};
	struct entry entry;
	int err;

	for (;; offset = entry.next_offset) {
		err = read_entry(section, offset, &entry);
		if (err)
			return err;
		if (entry.is_common)
			continue;
		function.offset = offset;
		err = 0;
		if (function.common.code_alignment == 0 ||
		    function.common.offset != entry.common_offset)
			err = read_common(section, entry.common_offset, &function.common);
		if (!err && !read_function(section, &entry, &function))
			break;
	}
	*ret_next_offset = entry.next_offset;
	*ret_function = function;
	return 0;
}
