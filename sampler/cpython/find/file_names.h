/* SPDX-License-Identifier: MIT */
/* Finds CPython's variables in mapped files, by the names of symbols and sections. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "symbols/elf/image_source.h"

/*
 * Limit on the symbols and names that are read from all files. A file with more than is left is
 * skipped. The largest libraries known have some 100 MiB of them.
 */
#define FILE_NAMES_MAX_BYTES (1u << 30)

/* Further files are skipped. */
#define FILE_NAMES_MAX_FILES 1024

/* The vaddrs of CPython's variables in a file; 0 if no symbol or section names them. */
struct file_names {
	uint64_t runtime_vaddr;	    /* _PyRuntime */
	const char *found_by;	    /* how that was found: "section" or "symbol" */
	uint64_t version_vaddr;	    /* Py_Version */
	uint64_t interp_head_vaddr; /* interp_head of 3.6, which has no _PyRuntime; not exported */
};

struct known_file;

/* Files already read, one entry per file, however often it is mapped. Empty if zero-initialised. */
struct file_names_cache {
	struct known_file *files;
	size_t nr_files;
	uint64_t nr_bytes; /* symbols and names read so far */
};

void file_names_cache_done(struct file_names_cache *cache);

/*
 * Read the names in the file of mapping, and the load bias to add to its vaddrs. The target's maps
 * must outlive the cache. Returns 0, with all names 0 if the file has none of them; -E2BIG if a
 * limit was reached; -ENOMEM; other errors of image_source_open().
 */
int file_names_find(struct file_names_cache *cache, struct image_source *images,
		    const struct mapping *mapping, struct file_names *ret_names,
		    uint64_t *ret_load_bias);
