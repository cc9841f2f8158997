/* SPDX-License-Identifier: MIT */
/*
 * The executable and libraries that a program has loaded, in the order in which they are searched
 * for CPython, and three ways to search them: by their variables, by the names in their files, and
 * by the text of a version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* In the order of the search. */
enum module_kind { MODULE_EXECUTABLE, MODULE_LIBPYTHON, MODULE_OTHER, NR_MODULE_KINDS };

/* Limit per kind; further modules are not searched. A browser has some 200. */
#define ELF_MODULES_MAX 1024

/* Limit per stretch of variables; the rest is not searched. CPython has 1 MiB of variables. */
#define MODULE_MAX_DATA_BYTES (32u << 20)

/* One loading of a file. */
struct elf_module {
	enum module_kind kind;
	const struct mapping *code;   /* its first executable mapping, or else its first mapping */
	const struct mapping *header; /* the mapping of the file's start; NULL if there is none */
	size_t first;		      /* its mappings in maps, [first, end), with the anonymous */
	size_t end;		      /* ones (.bss) between and directly after them */
};

/* Sorted by kind, then by address. Borrows from the maps. Empty if zero-initialised. */
struct elf_modules {
	struct elf_module *modules;
	size_t nr_modules;
};

/*
 * List the modules: files with an executable part, and in any case the executable, whose path is
 * exe_path ("" if unknown), and files called libpython…. A file that is loaded twice gives two
 * modules. Takes one pass over the mappings. Returns 0 or -ENOMEM. elf_modules_done() frees the
 * list and leaves it empty; it accepts NULL and an empty list.
 */
int elf_modules_list(const struct maps *maps, const char *exe_path,
		     struct elf_modules *ret_modules);
void elf_modules_done(struct elf_modules *modules);

/*
 * Reads the variables of a module block by block: its writable mappings, including .bss.
 *
 * 	for (module_data_init(&data, memory, maps, module); module_data_next(&data);)
 * 		use(data.addr, data.block, data.size);
 * 	module_data_done(&data);
 */
struct module_data {
	remote_addr addr;     /* of the block; a multiple of 8 */
	const uint8_t *block; /* size bytes, valid until the next call */
	size_t size;	      /* a multiple of 8 */

	/* Private. */
	struct remote_memory *memory;
	const struct maps *maps;
	size_t index; /* of the next mapping */
	size_t end;
	remote_addr next_addr; /* the unread rest of the current stretch */
	remote_addr end_addr;
	uint8_t *buffer;
};

/*
 * Consecutive blocks of a stretch share this many bytes, so anything shorter is whole in one of
 * them.
 */
#define MODULE_DATA_OVERLAP_BYTES 512

/*
 * module_data_next() returns false at the end, and if memory is short or cannot be read at all. It
 * skips blocks that cannot be read. module_data_done() accepts a zeroed struct.
 */
void module_data_init(struct module_data *data, struct remote_memory *memory,
		      const struct maps *maps, const struct elf_module *module);
bool module_data_next(struct module_data *data);
void module_data_done(struct module_data *data);

/*
 * Limit on the symbols and names that are read from all files. A file with more than is left is
 * skipped. The largest libraries known have some 100 MiB of them.
 */
#define FILE_NAMES_MAX_BYTES (1u << 30)

/* Further files are skipped. */
#define FILE_NAMES_MAX_FILES 1024

/*
 * Where a file has CPython's variables, by its symbols and sections, as vaddrs; 0 if it does not
 * say.
 */
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

/* Longer texts are not recognised. Py_GetVersion() has room for 250 or 300 bytes. */
#define VERSION_TEXT_MAX_BYTES 320

/*
 * The text behind sys.version. Every CPython that was started keeps it in a variable of
 * Py_GetVersion(), so its version can be read even if no symbol is left.
 *
 * Source: Py_GetVersion() in Python/getversion.c of 2.7 to 3.15: PY_VERSION, the build in
 * parentheses, the compiler in brackets. Distributors add words before the parentheses.
 */
struct version_text {
	uint32_t version_hex; /* PY_VERSION_HEX */
	bool is_pypy;	      /* the text names PyPy, another implementation */
};

/*
 * Whether text, of size bytes, begins with such a text; it need not be terminated. "3.9.18 (main,
 * Nov  1 2025, 10:00:00) \n[GCC 12.2.0]".
 */
bool version_text_parse(const char *text, size_t size, struct version_text *ret_version);

/*
 * Whether such a text may begin at bytes, of which eight must be readable. A quick test for a
 * search in steps of eight, the alignment of such variables.
 */
static inline bool version_text_may_begin(const uint8_t *bytes)
{
	return bytes[1] == '.' && (bytes[0] == '2' || bytes[0] == '3');
}
