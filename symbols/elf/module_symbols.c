/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_symbols.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "symbols/elf/memory_image.h"
#include "symbols/elf/symtab.h"

/* A module already searched. */
struct module {
	remote_addr start_addr;
	uint64_t inode;
};

/* A name and the places found. */
struct wanted {
	const char *name; /* borrowed */
	remote_addr places[MODULE_SYMBOLS_MAX_PLACES];
	uint32_t nr_places;
};

struct module_symbols {
	struct remote_memory *memory; /* borrowed */
	struct wanted wanted[MODULE_SYMBOLS_MAX_NAMES];
	uint32_t nr_wanted;
	struct module *modules; /* owned */
	uint32_t nr_modules, max_modules;
	uint64_t nr_bytes; /* searched in files so far */
};

struct module_symbols *module_symbols_create(struct remote_memory *memory, const char *const *names,
					     uint32_t nr_names)
{
	struct module_symbols *symbols = calloc(1, sizeof(*symbols));

	assert(nr_names <= MODULE_SYMBOLS_MAX_NAMES);
	if (!symbols)
		return NULL;
	symbols->memory = memory;
	for (; symbols->nr_wanted < nr_names; symbols->nr_wanted++)
		symbols->wanted[symbols->nr_wanted].name = names[symbols->nr_wanted];
	return symbols;
}

void module_symbols_destroy(struct module_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->modules);
	free(symbols);
}

/* Modules. */

static bool is_known(const struct module_symbols *symbols, const struct mapping *mapping)
{
	for (uint32_t i = 0; i < symbols->nr_modules; i++)
		if (symbols->modules[i].start_addr == mapping->start &&
		    symbols->modules[i].inode == mapping->inode)
			return true;
	return false;
}

static int add_module(struct module_symbols *symbols, const struct mapping *mapping)
{
	struct module *modules = array_reserve(symbols->modules, symbols->nr_modules + 1,
					       &symbols->max_modules, sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	symbols->modules = modules;
	modules[symbols->nr_modules++] =
		(struct module){.start_addr = mapping->start, .inode = mapping->inode};
	return 0;
}

/* Whether a part of the module [first, end) is executable. */
static bool has_code(const struct maps *maps, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (maps->mappings[i].executable)
			return true;
	return false;
}

/* Symbols. */

static void add_place(struct wanted *wanted, remote_addr addr)
{
	if (wanted->nr_places < MODULE_SYMBOLS_MAX_PLACES)
		wanted->places[wanted->nr_places++] = addr;
}

static void find_in_file(struct module_symbols *symbols, struct image *image,
			 const struct mapping *mapping)
{
	const uint64_t nr_bytes = symtab_bytes(image);
	uint64_t vaddr, size_bytes, load_bias;

	if (nr_bytes > MODULE_SYMBOLS_MAX_BYTES - symbols->nr_bytes ||
	    image_load_bias(image, mapping, &load_bias))
		return;
	symbols->nr_bytes += nr_bytes;
	for (uint32_t i = 0; i < symbols->nr_wanted; i++)
		if (!symtab_find(image, symbols->wanted[i].name, &vaddr, &size_bytes))
			add_place(&symbols->wanted[i], vaddr + load_bias);
}

/*
 * Add the places of a module in memory: all or, on -ENOMEM, none. Symbols that are missing, damaged
 * or unreadable have no place.
 */
static int find_in_memory(struct module_symbols *symbols, const struct memory_image *loaded)
{
	remote_addr addrs[MODULE_SYMBOLS_MAX_NAMES] = {0};

	for (uint32_t i = 0; i < symbols->nr_wanted; i++)
		if (memory_image_symbol(loaded, symbols->wanted[i].name, &addrs[i]) == -ENOMEM)
			return -ENOMEM;
	for (uint32_t i = 0; i < symbols->nr_wanted; i++)
		if (addrs[i])
			add_place(&symbols->wanted[i], addrs[i]);
	return 0;
}

/*
 * Search the module's file or, if it cannot be opened, its loaded part. Returns 0, or -ENOMEM when
 * nothing was added.
 */
static int search_module(struct module_symbols *symbols, const struct mapping *mapping,
			 struct image_source *source)
{
	struct memory_image loaded;
	struct image *image;
	int err = image_source_open(source, mapping, &image);

	if (!err) {
		find_in_file(symbols, image, mapping);
		image_close(image);
		return 0;
	}
	if (err == -ENOMEM)
		return err;
	err = memory_image_open(symbols->memory, mapping->start, &loaded);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = find_in_memory(symbols, &loaded);
	memory_image_close(&loaded);
	return err;
}

int module_symbols_find(struct module_symbols *symbols, const struct maps *maps,
			struct image_source *source)
{
	int err = 0;

	for (size_t i = 0, end; !err && i < maps->nr_mappings; i = end) {
		const struct mapping *mapping = &maps->mappings[i];

		end = maps_module_end(maps, i);
		if (symbols->nr_modules == MODULE_SYMBOLS_MAX_MODULES)
			return 0;
		if (!mapping->inode || !has_code(maps, i, end) || is_known(symbols, mapping))
			continue;
		err = add_module(symbols, mapping);
		if (err)
			return err;
		err = search_module(symbols, mapping, source);
		if (err)
			symbols->nr_modules--; /* the next call searches it again */
	}
	return err;
}

const remote_addr *module_symbols_places(const struct module_symbols *symbols, uint32_t name_index,
					 uint32_t *ret_nr_places)
{
	*ret_nr_places = symbols->wanted[name_index].nr_places;
	return symbols->wanted[name_index].places;
}
