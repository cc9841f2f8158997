/* SPDX-License-Identifier: MIT */
/*
 * One ELF file that a target has mapped. It is untrusted input and is never executed; libelf
 * reads it with pread, so nothing of it is mapped here. A struct image_source
 * (symbols/elf/image_source.h) finds the file.
 *
 * Source: the System V ABI, chapters "Object Files" and "Program Loading".
 */
#pragma once

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

#define BUILD_ID_MAX_BYTES 64

/* More program headers (linkers write about a dozen) or section headers are an error. */
#define IMAGE_MAX_SEGMENTS 1024
#define IMAGE_MAX_SECTIONS 65536
/* If the section names are longer, the sections have no names. */
#define IMAGE_MAX_SECTION_NAME_BYTES (1u << 20)

struct image;

/* Whether an ELF header is that of a 64-bit little-endian file of this machine. */
bool image_header_is_ours(const Elf64_Ehdr *header);

/*
 * Open an ELF file by descriptor. The image owns fd, also on failure. image_close() accepts NULL.
 *
 * Returns 0; -EBADMSG if it is not a regular file or not a 64-bit little-endian ELF file of this
 * machine, or if libelf lacks memory; -E2BIG; -ENOMEM; or another errno.
 */
int image_open_fd(int fd, struct image **ret_image);
void image_close(struct image *image);

/*
 * The load bias, which turns a _vaddr of the file into an _addr in the target, from one mapping
 * of the file: it follows from the PT_LOAD segment that covers the mapping's file offset. If
 * several segments share a page of the file, permissions and then order decide; for an executable
 * mapping and for the first mapping of a module the result is always right. Returns 0, or -ENOENT
 * if no segment covers the offset.
 */
int image_load_bias(const struct image *image, const struct mapping *mapping,
		    uint64_t *ret_load_bias);

/*
 * The vaddr and size of a section by name. Returns 0, or -ENOENT if there is none or the file has
 * no section headers.
 */
int image_section(const struct image *image, const char *name, uint64_t *ret_vaddr,
		  uint64_t *ret_size_bytes);

/*
 * Copy the GNU build ID, at most BUILD_ID_MAX_BYTES, to ret_build_id and return its length; 0 if
 * the file has none. It is in the PT_NOTE segments, or in note sections: eu-strip leaves it there
 * in the debug files that it makes.
 */
size_t image_build_id(const struct image *image, uint8_t ret_build_id[BUILD_ID_MAX_BYTES]);

/* The descriptor of the file, borrowed from the image; use it for reading only. */
int image_fd(const struct image *image);

/*
 * libelf's handle, borrowed from the image; use it for reading only. Check any size from the file
 * against a named limit before requesting data of it: libelf allocates as much as the file is
 * long, and keeps it until the image is closed.
 */
Elf *image_elf(const struct image *image);

/* The program headers as in the file, unchecked. Borrowed from the image. */
const Elf64_Phdr *image_segments(const struct image *image, size_t *ret_nr_segments);

/*
 * The bytes of section index as in the file. NULL if there is no such section of that type, or if
 * it is empty, compressed, longer than max_bytes, or not wholly in the file. image_strings() also
 * requires the last byte to be a NUL. Borrowed from the image.
 */
const Elf_Data *image_section_data(const struct image *image, size_t index, uint32_t type,
				   uint64_t max_bytes);
const Elf_Data *image_strings(const struct image *image, size_t index, uint64_t max_bytes);

/*
 * The bytes of the section called name, of any type, as image_section_data(). NULL also if the
 * file does not contain them (SHT_NOBITS), as where debug information was split off.
 */
const Elf_Data *image_section_bytes(const struct image *image, const char *name,
				    uint64_t max_bytes);

/*
 * The file offset of the size bytes at a vaddr. Returns 0, or -EFAULT if they are not wholly in
 * the file part of one PT_LOAD segment.
 */
int image_file_offset(const struct image *image, uint64_t vaddr, uint64_t size,
		      uint64_t *ret_file_offset);

/*
 * Read exactly size bytes of the file. Returns 0; -EBADMSG beyond the end of the file; or another
 * errno.
 */
int image_read(const struct image *image, uint64_t file_offset, void *buffer, size_t size);

/*
 * Read size bytes at a vaddr as they are in the file, not as the program has changed them.
 * Returns 0, or an error of image_file_offset() or image_read().
 */
int image_read_vaddr(const struct image *image, uint64_t vaddr, void *buffer, size_t size);
