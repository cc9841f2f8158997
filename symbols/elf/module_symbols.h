/* SPDX-License-Identifier: MIT */
/*
 * Finds the symbols of a few names, dynamic or not, in the modules of a process: in their files
 * or, if a file cannot be opened, in their loaded part. Each module is searched once.
 */
#pragma once

#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* Limit on the names. */
#define MODULE_SYMBOLS_MAX_NAMES 4

/*
 * Limit on the places of one name; others are left out. A module has at most one, and few modules
 * have any.
 */
#define MODULE_SYMBOLS_MAX_PLACES 16

/*
 * Limit on the modules searched; others are left out. Programs with many plug-ins have some
 * hundred.
 */
#define MODULE_SYMBOLS_MAX_MODULES 4096

/* Limit on the bytes of symbols searched in all files; libLLVM's have 10 MiB. */
#define MODULE_SYMBOLS_MAX_BYTES (512u << 20)

struct module_symbols;

/*
 * Search for at most MODULE_SYMBOLS_MAX_NAMES names in the modules of memory. All are borrowed.
 * NULL if out of memory. module_symbols_destroy() accepts NULL.
 */
struct module_symbols *module_symbols_create(struct remote_memory *memory, const char *const *names,
					     uint32_t nr_names);
void module_symbols_destroy(struct module_symbols *symbols);

/*
 * Search the modules of maps that were not searched yet: the files that source opens, or the
 * memory. A module that cannot be read has no symbols. Returns 0; or -ENOMEM, and the next call
 * continues with the module at which memory ran out.
 */
int module_symbols_find(struct module_symbols *symbols, const struct maps *maps,
			struct image_source *source);

/*
 * The addresses of the symbol with that name, in the order in which they were found. The
 * *ret_nr_places addresses are borrowed from symbols; later searches append to them.
 */
const remote_addr *module_symbols_places(const struct module_symbols *symbols, uint32_t name_index,
					 uint32_t *ret_nr_places);
