/* SPDX-License-Identifier: MIT */
/*
 * The programs and libraries that a program has loaded, in the order in which CPython
 * is looked for in them; and what they tell of it: by their variables, by the names in their files,
 * and by the text of a version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* The order of the search. */
enum module_kind { MODULE_EXECUTABLE, MODULE_LIBPYTHON, MODULE_OTHER, NR_MODULE_KINDS };

/* Modules of one kind beyond so many are not looked at; a browser has some 200. */
#define MODULES_MAX 1024

/* Of one stretch of variables so much is looked at; CPython has 1 MiB of them. */
#define MODULE_MAX_DATA_BYTES (32u << 20)

/* One loading of one file. */
struct module {
	enum module_kind kind;
	const struct mapping *code;   /* its first executable mapping, or its first one at all */
	const struct mapping *header; /* that of the beginning of the file; NULL if there is none */
	size_t first;		      /* its mappings, [first, end) of the maps: anonymous ones */
	size_t end;		      /* (.bss) between and right behind them included */
};

/* By rising kind, then address. Borrows from the maps. Zero-initialised it is empty. */
struct modules {
	struct module *modules;
	size_t nr_modules;
};

/*
 * List what is loaded: files of which a part is executable, the program, which is at exe_path (""
 * if that is not known), and files called libpython… in any case. A file that is loaded twice is
 * two modules. In one pass over the mappings. 0 or -ENOMEM. modules_done() frees the list, which is
 * empty then; it accepts NULL and an empty one.
 */
int modules_list(const struct maps *maps, const char *exe_path, struct modules *ret_modules);
void modules_done(struct modules *modules);

/*
 * Reads the variables of a module, block by block: its writable mappings, .bss included.
 *
 *	for (module_data_init(&data, memory, maps, module); module_data_next(&data);)
 *		use(data.addr, data.block, data.size);
 *	module_data_done(&data);
 */
struct module_data {
	remote_addr addr;     /* where the block comes from; a multiple of 8 */
	const uint8_t *block; /* size bytes, valid until the next call; */
	size_t size;	      /* a multiple of 8 */

	/* Private. */
	struct remote_memory *memory;
	const struct maps *maps;
	size_t index; /* of the next mapping */
	size_t end;
	remote_addr next_addr; /* the rest of the stretch that is being read */
	remote_addr end_addr;
	uint8_t *buffer;
};

/*
 * Two blocks of one stretch share so many bytes: what is shorter than this is whole
 * in one of them.
 */
#define MODULE_DATA_OVERLAP_BYTES 512

/*
 * module_data_next() is false at the end, and if memory is short or none can be read;
 * blocks that cannot be read are passed over. module_data_done() accepts one that is zero.
 */
void module_data_init(struct module_data *data, struct remote_memory *memory,
		      const struct maps *maps, const struct module *module);
bool module_data_next(struct module_data *data);
void module_data_done(struct module_data *data);

/*
 * So many bytes of symbols and their names are read in all; a file that has more than is
 * left is passed over. The largest libraries known have some 100 MiB of them.
 */
#define FILE_NAMES_MAX_BYTES (1u << 30)

/* Files beyond so many are passed over. */
#define FILE_NAMES_MAX_FILES 1024

/*
 * Where a file says that CPython's variables lie: symbols and sections, as vaddrs; 0: it has none
 * such.
 */
struct file_names {
	uint64_t runtime_vaddr;	    /* _PyRuntime; */
	const char *found_by;	    /* by "section" or "symbol" */
	uint64_t version_vaddr;	    /* Py_Version */
	uint64_t interp_head_vaddr; /* of 3.6, which has no _PyRuntime; it is not exported */
};

struct known_file;

/*
 * The files that were read, each once, however often it is mapped. Zero-initialised there are none.
 */
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

/* No longer text is one: Py_GetVersion() has 250 or 300 bytes for it. */
#define VERSION_TEXT_MAX_BYTES 320

/*
 * The text that sys.version is made of. Every CPython that has begun keeps it in a
 * variable of Py_GetVersion(), so that its version can be read where no symbol is left.
 *
 * Source: Py_GetVersion() in Python/getversion.c of 2.7 to 3.15: PY_VERSION, the build
 * in parentheses, the compiler in brackets. Distributors add words before the
 * parentheses.
 */
struct version_text {
	uint32_t version_hex; /* PY_VERSION_HEX */
	bool is_pypy;	      /* it says so: an implementation of its own */
};

/*
 * Whether such a text begins text, of which size bytes are there; it need not be
 * terminated. "3.9.18 (main, Nov  1 2025, 10:00:00) \n[GCC 12.2.0]".
 */
bool version_text_parse(const char *text, size_t size, struct version_text *ret_version);

/*
 * Whether the eight bytes at bytes can begin one: most do not. For a search in steps of
 * eight, which is how such variables are aligned.
 */
static inline bool version_text_may_begin(const uint8_t *bytes)
{
	return bytes[1] == '.' && (bytes[0] == '2' || bytes[0] == '3');
}
