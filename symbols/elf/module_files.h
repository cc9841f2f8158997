/* SPDX-License-Identifier: MIT */
/*
 * What was read of the files that modules are loaded from: how their functions are unwound, and
 * what they are called. Modules of one file share it, and it stays while the mappings of a target
 * are read anew, as those of a process that makes code are each second: a file is known by its
 * build ID.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/function_symbols.h"
#include "symbols/elf/image.h"
#include "symbols/elf/memory_image.h"
#include "symbols/unwind/unwind_table.h"

/* Of all files together no more bytes of unwind information are read; what comes then has none. */
#define MODULE_FILES_MAX_UNWIND_BYTES (1u << 30)

/*
 * Files that no module uses any more are forgotten when there are so many: of a process that loads
 * and unloads modules that it has just built.
 */
#define MODULE_FILES_KEPT 1024

/*
 * What tells a file from others. Some builds give all of their files one build ID, so it is not
 * alone: program headers tell how large each segment is, and where.
 */
struct module_file_id {
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t build_id_bytes; /* 0: it has none, and is not known again */
	const Elf64_Phdr *segments;
	size_t nr_segments;
};

/* What is there once it was read; who reads it writes it here. */
struct module_file {
	struct unwind_table *eh_frame;	  /* NULL: not read, or there is none */
	struct unwind_table *debug_frame; /* likewise */
	struct function_symbols *symbols; /* likewise */
	bool has_read_memory;		  /* what is loaded of it */
	bool has_read_file;		  /* the unwind information that is not loaded */
	bool has_read_symbols;
	/* Private. */
	struct module_file_id id; /* its segments are owned */
	uint32_t nr_users;
};

struct module_files;

/* Create without any. NULL if out of memory. module_files_destroy() accepts NULL. */
struct module_files *module_files_create(void);
void module_files_destroy(struct module_files *files);

/*
 * The file of that ID, whose segments are copied: as it was read before, or without anything. NULL
 * if out of memory. It is to be given back with module_files_put(), which accepts NULL.
 */
struct module_file *module_files_get(struct module_files *files, const struct module_file_id *id);
void module_files_put(struct module_files *files, struct module_file *file);

/* The ID of a file, and of what is loaded of one; segments are borrowed from the image. */
struct module_file_id module_file_id_of_image(const struct image *image);
struct module_file_id module_file_id_of_memory(const struct memory_image *image);

/* How many bytes of unwind information may still be read. */
uint64_t module_files_bytes_left(const struct module_files *files);

/*
 * The table of a section of no more than that, whose bytes it takes over, also on failure, of an
 * image whose lowest vaddr is lowest_vaddr; it is to be one of a file's. NULL: out of memory.
 */
struct unwind_table *module_files_table(struct module_files *files,
					const struct cfi_section *section, uint64_t lowest_vaddr);
