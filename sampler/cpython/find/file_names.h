/* SPDX-License-Identifier: MIT */
/*
 * Where the files that a process has mapped say that CPython's variables lie. Each file is
 * read once, however often it is mapped, and all of them together up to a limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "symbols/image_source.h"

/*
 * So many bytes of symbols and their names are read in all; a file that has more than is
 * left is passed over. The largest libraries known have some 100 MiB of them.
 */
#define FILE_NAMES_MAX_BYTES (1u << 30)

/* Files beyond so many are passed over. */
#define FILE_NAMES_MAX_FILES 1024

/* The symbols and sections of one file, as vaddrs; 0: it has none such. */
struct file_names {
	uint64_t runtime_vaddr;	    /* _PyRuntime; */
	const char *found_by;	    /* by "section" or "symbol" */
	uint64_t version_vaddr;	    /* Py_Version */
	uint64_t interp_head_vaddr; /* of 3.6, which has no _PyRuntime; it is not exported */
};

struct known_file;

/* The files that were read. Zero-initialised there are none. */
struct file_names_cache {
	struct known_file *files;
	size_t nr_files;
	uint64_t nr_bytes; /* of their symbols and names */
};

void file_names_cache_done(struct file_names_cache *cache);

/*
 * The names in the file of mapping, and what has to be added to its vaddrs. The target's maps stay
 * as long as the cache. 0, the names all 0 if the file has none of them; -E2BIG: a limit was reached;
 * errors of image_source_open().
 */
int file_names_find(struct file_names_cache *cache, struct image_source *images,
		    const struct mapping *mapping, struct file_names *ret_names,
		    uint64_t *ret_load_bias);
