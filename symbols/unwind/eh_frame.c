/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/eh_frame.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* .eh_frame_hdr starts with four bytes and a pointer of at most ten bytes. */
#define HEADER_BYTES   16
#define HEADER_VERSION 1

/* Read in chunks, so that a false size allocates no more memory than there is to read. */
#define CHUNK_BYTES (256u << 10)

static const Elf64_Phdr *find_segment(const struct memory_image *image, uint32_t type)
{
	for (size_t i = 0; i < image->nr_segments; i++)
		if (image->segments[i].p_type == type)
			return &image->segments[i];
	return NULL;
}

/* The number of bytes from vaddr to the end of its segment; 0 if no segment contains it. */
static uint64_t bytes_to_end(const struct memory_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->nr_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		const uint64_t offset = vaddr - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr &&
		    offset < segment->p_filesz)
			return segment->p_filesz - offset;
	}
	return 0;
}

/* Read the vaddr of .eh_frame from .eh_frame_hdr. */
static int read_header(const struct memory_image *image, uint64_t header_vaddr, uint64_t *ret_vaddr)
{
	uint8_t bytes[HEADER_BYTES];
	const struct cfi_section header = {.bytes = bytes,
					   .nr_bytes = sizeof(bytes),
					   .vaddr = header_vaddr,
					   .data_vaddr = header_vaddr};
	struct byte_cursor cursor = {.at = bytes, .end = bytes + sizeof(bytes)};
	uint64_t version;
	uint8_t encoding;
	int err;

	err = remote_memory_read(image->memory, header_vaddr + image->load_bias, bytes,
				 sizeof(bytes));
	if (err)
		return err;
	version = byte_cursor_fixed(&cursor, 1);
	encoding = (uint8_t)byte_cursor_fixed(&cursor, 1);
	(void)byte_cursor_fixed(&cursor, 2); /* encodings of the search table, which is unused */
	if (version != HEADER_VERSION || encoding == DW_EH_PE_omit)
		return -EBADMSG;
	*ret_vaddr = cfi_pointer(&header, &cursor, encoding);
	return cursor.is_bad ? -EBADMSG : 0;
}

/* Copy the readable part of max_bytes at addr. */
static int copy_up_to(struct remote_memory *memory, remote_addr addr, uint64_t max_bytes,
		      uint8_t **ret_bytes, size_t *ret_nr_bytes)
{
	cleanup_free uint8_t *bytes = NULL;
	struct remote_range range = {.addr = addr};
	size_t nr_bytes = 0;
	int err;

	while (nr_bytes < max_bytes && range.done_bytes == range.size) {
		uint8_t *larger = realloc(bytes, nr_bytes + CHUNK_BYTES);

		if (!larger)
			return -ENOMEM;
		bytes = larger;
		range.addr = addr + nr_bytes;
		range.buffer = bytes + nr_bytes;
		range.size =
			max_bytes - nr_bytes < CHUNK_BYTES ? max_bytes - nr_bytes : CHUNK_BYTES;
		err = remote_memory_read_ranges(memory, &range, 1);
		if (err)
			return err;
		nr_bytes += range.done_bytes;
	}
	if (!nr_bytes)
		return -EFAULT;
	*ret_bytes = take_ptr(bytes);
	*ret_nr_bytes = nr_bytes;
	return 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int eh_frame_copy(const struct memory_image *image, uint64_t max_bytes,
		  struct cfi_section *ret_section)
{
	const Elf64_Phdr *header = find_segment(image, PT_GNU_EH_FRAME);
	struct cfi_section section = {.kind = CFI_EH_FRAME};
	uint64_t nr_bytes;
	uint8_t *bytes;
	int err;

	if (!header)
		return -ENOENT;
	section.data_vaddr = header->p_vaddr;
	err = read_header(image, header->p_vaddr, &section.vaddr);
	if (err)
		return err;
	nr_bytes = bytes_to_end(image, section.vaddr);
	if (!nr_bytes)
		return -EBADMSG;
	err = copy_up_to(image->memory, section.vaddr + image->load_bias,
			 smaller(nr_bytes, smaller(max_bytes, CFI_MAX_BYTES)), &bytes,
			 &section.nr_bytes);
	if (err)
		return err;
	section.bytes = bytes;
	*ret_section = section;
	return 0;
}

int cfi_copy_of_file(const struct image *image, enum cfi_kind kind, uint64_t max_bytes,
		     struct cfi_section *ret_section)
{
	const char *name = kind == CFI_EH_FRAME ? ".eh_frame" : ".debug_frame";
	const Elf_Data *data = image_section_bytes(image, name, smaller(max_bytes, CFI_MAX_BYTES));
	struct cfi_section section = {.kind = kind};
	uint64_t size_bytes;
	uint8_t *bytes;

	if (!data || image_section(image, name, &section.vaddr, &size_bytes))
		return -ENOENT;
	bytes = malloc(data->d_size);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, data->d_buf, data->d_size);
	section.bytes = bytes;
	section.nr_bytes = data->d_size;
	*ret_section = section;
	return 0;
}
