/* SPDX-License-Identifier: MIT */
/*
 * One ELF file that a target has mapped: opened safely, never executed, never
 * trusted. libelf reads it with pread; nothing of it is mapped here.
 *
 * Which file that is, says a struct image_source (symbols/elf/image_source.h).
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

/* More program headers (linkers write about a dozen), or more section headers, are an error… */
#define IMAGE_MAX_SEGMENTS 1024
#define IMAGE_MAX_SECTIONS 65536
/* …more bytes of section names mean that the sections have none. */
#define IMAGE_MAX_SECTION_NAME_BYTES (1u << 20)

struct image;

/* Whether an ELF header is that of a 64-bit little-endian file of this machine. */
bool image_header_is_ours(const Elf64_Ehdr *header);

/*
 * Open an ELF file by descriptor. The image owns fd, also on failure. 0; -EBADMSG (not a
 * 64-bit little-endian ELF file of this machine, no regular file, or libelf lacks
 * memory), -E2BIG, -ENOMEM, or another errno. image_close() accepts NULL.
 */
int image_open_fd(int fd, struct image **ret_image);
void image_close(struct image *image);

/*
 * What must be added to a _vaddr of the file to get its _addr in the target,
 * given one mapping of the file: from the PT_LOAD segment that covers the
 * mapping's file offset. Segments may share a page of the file: permissions then
 * tell which one is meant, at last the order; an executable mapping, or the first
 * of a module, is always told right. 0 or -ENOENT (no segment covers it).
 */
int image_load_bias(const struct image *image, const struct mapping *mapping,
		    uint64_t *ret_load_bias);

/*
 * A section by name: its vaddr and size. 0; -ENOENT (none, or the file has no
 * section headers).
 */
int image_section(const struct image *image, const char *name, uint64_t *ret_vaddr,
		  uint64_t *ret_size_bytes);

/*
 * The GNU build ID, from the PT_NOTE segments, or from the sections of notes, where eu-strip
 * leaves it in the debug files that it makes: at most BUILD_ID_MAX_BYTES into ret_build_id,
 * its length as the result; 0 if the file has none.
 */
size_t image_build_id(const struct image *image, uint8_t ret_build_id[BUILD_ID_MAX_BYTES]);

/* The descriptor of the file, for reading only. Borrowed from the image. */
int image_fd(const struct image *image);

/*
 * libelf's handle, for reading only. Check a size that the file tells against a
 * named limit before asking for data of it: libelf keeps all data until the image
 * is closed, and takes as much as the file is long. Borrowed from the image.
 */
Elf *image_elf(const struct image *image);

/*
 * The program headers as the file has them: nothing in them was checked. Borrowed
 * from the image.
 */
const Elf64_Phdr *image_segments(const struct image *image, size_t *ret_nr_segments);

/*
 * The bytes of section index as the file has them; of a string table only if the
 * last one is a NUL. NULL if there is no such section of that type, or it is
 * empty, compressed, longer than max_bytes, or not wholly in the file. Borrowed
 * from the image.
 */
const Elf_Data *image_section_data(const struct image *image, size_t index, uint32_t type,
				   uint64_t max_bytes);
const Elf_Data *image_strings(const struct image *image, size_t index, uint64_t max_bytes);

/*
 * The bytes of the section called name, of whatever type: as image_section_data() says; NULL
 * also if the file has none of them (SHT_NOBITS), as where debug information was split off.
 */
const Elf_Data *image_section_bytes(const struct image *image, const char *name,
				    uint64_t max_bytes);

/*
 * Where in the file the size bytes at a vaddr are. 0 or -EFAULT (not wholly in
 * one PT_LOAD segment's file part).
 */
int image_file_offset(const struct image *image, uint64_t vaddr, uint64_t size,
		      uint64_t *ret_file_offset);

/* Read size bytes of the file, all of them. 0; -EBADMSG (beyond its end), or another errno. */
int image_read(const struct image *image, uint64_t file_offset, void *buffer, size_t size);

/*
 * Read size bytes at a vaddr as the file has them, not as the program has
 * changed them. 0, or an error of image_file_offset() or image_read().
 */
int image_read_vaddr(const struct image *image, uint64_t vaddr, void *buffer, size_t size);
