/* SPDX-License-Identifier: MIT */
/*
 * Where the modules of a process have the symbols of a few names, dynamic or not: by their files,
 * or by what is loaded of them where a file cannot be had. Each module is looked at once, as the
 * process loads it.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* Names that can be looked for. */
#define MODULE_SYMBOLS_MAX_NAMES 4

/* Places of one name; others are left out. A module has one, and few modules have any. */
#define MODULE_SYMBOLS_MAX_PLACES 16

/*
 * Modules that are looked at; others are left out. Programs with many plug-ins have some hundred.
 */
#define MODULE_SYMBOLS_MAX_MODULES 4096

/* So many bytes of symbols of all files are searched; libLLVM's have 10 MiB. */
#define MODULE_SYMBOLS_MAX_BYTES (512u << 20)

struct module_symbols;

/*
 * Look for at most MODULE_SYMBOLS_MAX_NAMES names in the modules that memory has; all are
 * borrowed. NULL if out of memory. module_symbols_destroy() accepts NULL.
 */
struct module_symbols *module_symbols_create(struct remote_memory *memory, const char *const *names,
					     uint32_t nr_names);
void module_symbols_destroy(struct module_symbols *symbols);

/*
 * Look at the modules of maps that were not looked at yet: at the files that source opens, or at
 * the memory. 0 or -ENOMEM.
 */
int module_symbols_find(struct module_symbols *symbols, const struct maps *maps,
			struct image_source *source);

/*
 * Where symbols of the name of that index are, as they were found: *ret_nr_places addresses,
 * borrowed from symbols, where more may come behind them.
 */
const remote_addr *module_symbols_places(const struct module_symbols *symbols, uint32_t name_index,
					 uint32_t *ret_nr_places);
