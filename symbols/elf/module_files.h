/* SPDX-License-Identifier: MIT */
/*
 * The unwind information and symbols read from the files of modules. Modules of one file share
 * them. They outlive a re-reading of the target's mappings, which happens each second for a
 * process that makes code. A file is identified by its build ID.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/elf/function_symbols.h"
#include "symbols/elf/image.h"
#include "symbols/elf/memory_image.h"
#include "symbols/unwind/unwind_table.h"

/*
 * Limit on the bytes of unwind information of all files together. Files read after it is reached
 * have none.
 */
#define MODULE_FILES_MAX_UNWIND_BYTES (1u << 30)

/*
 * When this many files are kept, those that no module uses are dropped: a process may load and
 * unload modules that it has just built.
 */
#define MODULE_FILES_KEPT 1024

/*
 * Identifies a file. Some builds give all their files one build ID, so the program headers, with
 * the size and place of each segment, must match as well.
 */
struct module_file_id {
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	size_t build_id_bytes; /* 0: the file has none, and never matches another */
	const Elf64_Phdr *segments;
	size_t nr_segments;
};

/* What was read of a file. Whoever reads it stores it here. */
struct module_file {
	struct unwind_table *eh_frame;	  /* NULL: not read, or there is none */
	struct unwind_table *debug_frame; /* likewise */
	struct function_symbols *symbols; /* likewise */
	bool has_read_memory;		  /* its loaded unwind information */
	bool has_read_file;		  /* its unwind information that is not loaded */
	bool has_read_symbols;
	/* Private. */
	struct module_file_id id; /* segments is owned */
	uint32_t nr_users;
};

struct module_files;

/* Create an empty set. NULL if out of memory. module_files_destroy() accepts NULL. */
struct module_files *module_files_create(void);
void module_files_destroy(struct module_files *files);

/*
 * The file with the given ID, whose segments are copied: with what was read before, or empty.
 * NULL if out of memory. Return it with module_files_put(), which accepts NULL.
 */
struct module_file *module_files_get(struct module_files *files, const struct module_file_id *id);
void module_files_put(struct module_files *files, struct module_file *file);

/* The ID of a file, from the file or from its loaded part. segments is borrowed from the image. */
struct module_file_id module_file_id_of_image(const struct image *image);
struct module_file_id module_file_id_of_memory(const struct memory_image *image);

/* How many bytes of unwind information may still be read. */
uint64_t module_files_bytes_left(const struct module_files *files);

/*
 * Create the unwind table of a section of an image whose lowest vaddr is lowest_vaddr. The
 * section has at most module_files_bytes_left() bytes; takes ownership of them, also on failure.
 * The caller stores the table in a module_file. NULL if out of memory.
 */
struct unwind_table *module_files_table(struct module_files *files,
					const struct cfi_section *section, uint64_t lowest_vaddr);
