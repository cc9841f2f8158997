/* SPDX-License-Identifier: MIT */
/*
 * The executable and libraries that a program has loaded, in the order in which they are searched
 * for CPython, and their variables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

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
