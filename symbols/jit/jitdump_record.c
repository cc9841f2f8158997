/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jitdump_record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* The magic as read little-endian, of a little- and of a big-endian writer. */
#define MAGIC	      0x4a695444u
#define MAGIC_SWAPPED 0x4454694au

enum { VERSION = 1, FLAG_ARCH_TIMESTAMP = 1 };

/* Writers pad records to a multiple of eight bytes, or not at all. */
enum { MAX_PADDING_BYTES = 7 };

/* The fixed parts of records, with the prefix. */
enum {
	LOAD_BYTES = 56,
	MOVE_BYTES = 64,
	DEBUG_INFO_BYTES = JITDUMP_LINES_OFFSET,
	UNWINDING_INFO_BYTES = JITDUMP_UNWIND_OFFSET,
};

uint32_t jitdump_u32(const uint8_t *bytes, size_t offset, bool is_big_endian)
{
	const uint32_t value = field_u32(bytes, offset);

	return is_big_endian ? be32toh(value) : le32toh(value);
}

uint64_t jitdump_u64(const uint8_t *bytes, size_t offset, bool is_big_endian)
{
	const uint64_t value = field_u64(bytes, offset);

	return is_big_endian ? be64toh(value) : le64toh(value);
}

int jitdump_header_decode(const uint8_t *bytes, size_t nr, struct jitdump_header *ret_header)
{
	struct jitdump_header header;
	uint32_t magic;
	uint64_t flags;

	if (nr < sizeof(magic))
		return -EAGAIN;
	magic = jitdump_u32(bytes, 0, false);
	if (magic != MAGIC && magic != MAGIC_SWAPPED)
		return -EBADMSG;
	if (nr < JITDUMP_HEADER_BYTES)
		return -EAGAIN;
	const bool is_big = magic == MAGIC_SWAPPED;

	header = (struct jitdump_header){.is_big_endian = is_big,
					 .nr_bytes = jitdump_u32(bytes, 8, is_big),
					 .elf_machine = jitdump_u32(bytes, 12, is_big),
					 .pid = jitdump_u32(bytes, 20, is_big),
					 .timestamp = jitdump_u64(bytes, 24, is_big)};
	flags = jitdump_u64(bytes, 32, is_big);
	header.has_ticks = flags & FLAG_ARCH_TIMESTAMP;
	if (jitdump_u32(bytes, 4, is_big) != VERSION || (flags & ~(uint64_t)FLAG_ARCH_TIMESTAMP))
		return -ENOTSUP;
	if (header.nr_bytes < JITDUMP_HEADER_BYTES || header.nr_bytes > JITDUMP_MAX_HEADER_BYTES)
		return -EBADMSG;
	*ret_header = header;
	return 0;
}

/* Whether nr_bytes fill the record except for padding. */
static bool fills(const struct jitdump_record *record, uint64_t nr_bytes)
{
	return nr_bytes <= record->nr_bytes && record->nr_bytes - nr_bytes <= MAX_PADDING_BYTES;
}

static bool is_range(remote_addr addr, uint64_t nr_bytes)
{
	remote_addr end_addr;

	return !__builtin_add_overflow(addr, nr_bytes, &end_addr);
}

/*
 * Decode the name: it fills what the code leaves, except for its NUL and the padding after the
 * code.
 */
static int decode_name(const uint8_t *bytes, size_t nr, struct jitdump_record *record)
{
	uint32_t room, length;

	if (record->code_bytes > record->nr_bytes - LOAD_BYTES)
		return -EBADMSG;
	room = record->nr_bytes - LOAD_BYTES - (uint32_t)record->code_bytes;
	if (room > JITDUMP_MAX_NAME_BYTES + 1 + MAX_PADDING_BYTES)
		return -EBADMSG;
	if (nr < LOAD_BYTES + room)
		return -EAGAIN;
	record->name = (const char *)bytes + LOAD_BYTES;
	length = (uint32_t)strnlen(record->name, room);
	if (length == room || length > JITDUMP_MAX_NAME_BYTES ||
	    !fills(record, LOAD_BYTES + length + 1 + record->code_bytes))
		return -EBADMSG;
	record->name_bytes = length;
	record->code_offset = LOAD_BYTES + length + 1;
	return 0;
}

static int decode_load(const uint8_t *bytes, size_t nr, bool is_big, struct jitdump_record *record)
{
	if (record->nr_bytes <= LOAD_BYTES)
		return -EBADMSG;
	if (nr < LOAD_BYTES)
		return -EAGAIN;
	record->pid = jitdump_u32(bytes, 16, is_big);
	record->code_addr = jitdump_u64(bytes, 32, is_big);
	record->code_bytes = jitdump_u64(bytes, 40, is_big);
	record->code_index = jitdump_u64(bytes, 48, is_big);
	return is_range(record->code_addr, record->code_bytes) ? decode_name(bytes, nr, record)
							       : -EBADMSG;
}

static int decode_move(const uint8_t *bytes, size_t nr, bool is_big, struct jitdump_record *record)
{
	if (record->nr_bytes != MOVE_BYTES)
		return -EBADMSG;
	if (nr < MOVE_BYTES)
		return -EAGAIN;
	record->pid = jitdump_u32(bytes, 16, is_big);
	record->old_addr = jitdump_u64(bytes, 32, is_big);
	record->code_addr = jitdump_u64(bytes, 40, is_big);
	record->code_bytes = jitdump_u64(bytes, 48, is_big);
	record->code_index = jitdump_u64(bytes, 56, is_big);
	return is_range(record->code_addr, record->code_bytes) ? 0 : -EBADMSG;
}

static int decode_debug_info(const uint8_t *bytes, size_t nr, bool is_big,
			     struct jitdump_record *record)
{
	uint64_t nr_bytes, max_bytes;

	if (record->nr_bytes < DEBUG_INFO_BYTES)
		return -EBADMSG;
	if (nr < DEBUG_INFO_BYTES)
		return -EAGAIN;
	record->code_addr = jitdump_u64(bytes, 16, is_big);
	record->nr_lines = jitdump_u64(bytes, 24, is_big);
	nr_bytes = record->nr_bytes - DEBUG_INFO_BYTES;
	if (record->nr_lines > nr_bytes / JITDUMP_MIN_LINE_BYTES)
		return -EBADMSG;
	max_bytes = record->nr_lines * JITDUMP_MAX_LINE_BYTES + MAX_PADDING_BYTES;
	return nr_bytes <= max_bytes ? 0 : -EBADMSG;
}

static int decode_unwinding_info(const uint8_t *bytes, size_t nr, bool is_big,
				 struct jitdump_record *record)
{
	if (record->nr_bytes < UNWINDING_INFO_BYTES)
		return -EBADMSG;
	if (nr < UNWINDING_INFO_BYTES)
		return -EAGAIN;
	record->unwind_bytes = jitdump_u64(bytes, 16, is_big);
	record->eh_header_bytes = jitdump_u64(bytes, 24, is_big);
	if (record->unwind_bytes > record->nr_bytes ||
	    record->eh_header_bytes > record->unwind_bytes)
		return -EBADMSG;
	return fills(record, UNWINDING_INFO_BYTES + record->unwind_bytes) ? 0 : -EBADMSG;
}

int jitdump_record_decode(const uint8_t *bytes, size_t nr, bool is_big_endian,
			  struct jitdump_record *ret_record)
{
	struct jitdump_record record = {0};
	int err = 0;

	if (nr < JITDUMP_PREFIX_BYTES)
		return -EAGAIN;
	record.id = jitdump_u32(bytes, 0, is_big_endian);
	record.nr_bytes = jitdump_u32(bytes, 4, is_big_endian);
	record.time_ns = jitdump_u64(bytes, 8, is_big_endian);
	if (record.nr_bytes < JITDUMP_PREFIX_BYTES || record.nr_bytes > JITDUMP_MAX_RECORD_BYTES)
		return -EBADMSG;
	if (record.id == JITDUMP_LOAD)
		err = decode_load(bytes, nr, is_big_endian, &record);
	else if (record.id == JITDUMP_MOVE)
		err = decode_move(bytes, nr, is_big_endian, &record);
	else if (record.id == JITDUMP_DEBUG_INFO)
		err = decode_debug_info(bytes, nr, is_big_endian, &record);
	else if (record.id == JITDUMP_CLOSE)
		err = record.nr_bytes == JITDUMP_PREFIX_BYTES ? 0 : -EBADMSG;
	else if (record.id == JITDUMP_UNWINDING_INFO)
		err = decode_unwinding_info(bytes, nr, is_big_endian, &record);
	if (!err)
		*ret_record = record;
	return err;
}
