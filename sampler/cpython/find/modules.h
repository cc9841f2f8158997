/* SPDX-License-Identifier: MIT */
/*
 * The programs and libraries that a program has loaded, in the order in which CPython
 * is looked for in them; and what each of them keeps its variables in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

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
