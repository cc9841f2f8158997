/* SPDX-License-Identifier: MIT */
#include "symbols/elf/stdio_file.h"

#include <errno.h>

/* struct _IO_FILE, the members read. */
enum {
	FLAGS_OFFSET = 0,
	WRITE_BASE_OFFSET = 32,
	WRITE_PTR_OFFSET = 40,
	BUF_BASE_OFFSET = 56,
	BUF_END_OFFSET = 64,
	CHAIN_OFFSET = 104,
	FILENO_OFFSET = 112,
	FILE_BYTES = 116,
};

/* The upper half of the flags is _IO_MAGIC. */
#define MAGIC	   0xfbad0000u
#define MAGIC_MASK 0xffff0000u

/* Decode the range of unwritten bytes of a FILE: empty if the FILE is just being changed. */
static void decode_unwritten(const uint8_t *bytes, struct stdio_file *file)
{
	const remote_addr start_addr = field_u64(bytes, WRITE_BASE_OFFSET);
	const remote_addr end_addr = field_u64(bytes, WRITE_PTR_OFFSET);

	if (start_addr < field_u64(bytes, BUF_BASE_OFFSET) || end_addr < start_addr ||
	    end_addr > field_u64(bytes, BUF_END_OFFSET))
		return;
	file->unwritten_addr = start_addr;
	file->unwritten_bytes = end_addr - start_addr < STDIO_FILE_MAX_UNWRITTEN_BYTES
					? (uint32_t)(end_addr - start_addr)
					: STDIO_FILE_MAX_UNWRITTEN_BYTES;
}

static int read_file(struct remote_memory *memory, remote_addr addr, uint32_t index,
		     struct stdio_file *ret_file)
{
	uint8_t bytes[FILE_BYTES];
	struct stdio_file file = {.addr = addr, .index = index};
	int err = remote_memory_read(memory, addr, bytes, sizeof(bytes));

	if (err)
		return err;
	if ((field_u32(bytes, FLAGS_OFFSET) & MAGIC_MASK) != MAGIC)
		return -EBADMSG;
	file.next_addr = field_u64(bytes, CHAIN_OFFSET);
	file.fd = field_i32(bytes, FILENO_OFFSET);
	decode_unwritten(bytes, &file);
	*ret_file = file;
	return 0;
}

int stdio_file_first(struct remote_memory *memory, remote_addr list_addr,
		     struct stdio_file *ret_file)
{
	remote_addr addr;
	int err = remote_memory_read_u64(memory, list_addr, &addr);

	if (err)
		return err;
	return addr ? read_file(memory, addr, 0, ret_file) : -ENOENT;
}

int stdio_file_next(struct remote_memory *memory, const struct stdio_file *file,
		    struct stdio_file *ret_file)
{
	const uint32_t index = file->index + 1;

	if (!file->next_addr || index == STDIO_FILE_MAX)
		return -ENOENT;
	return read_file(memory, file->next_addr, index, ret_file);
}

int stdio_file_reread(struct remote_memory *memory, struct stdio_file *file)
{
	return read_file(memory, file->addr, file->index, file);
}

int stdio_file_read_unwritten(struct remote_memory *memory, const struct stdio_file *file,
			      uint8_t *buffer)
{
	struct stdio_file again = *file;
	int err = remote_memory_read(memory, file->unwritten_addr, buffer, file->unwritten_bytes);

	if (!err)
		err = stdio_file_reread(memory, &again);
	if (err)
		return err;
	return again.unwritten_addr == file->unwritten_addr &&
			       again.unwritten_bytes >= file->unwritten_bytes
		       ? 0
		       : -EAGAIN;
}
