/* SPDX-License-Identifier: MIT */
#include "symbols/elf/native_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/demangle.h"
#include "symbols/elf/function_symbols.h"

struct module {
	struct module_file *file; /* NULL: not read, or not readable */
	uint64_t load_bias;
	bool is_read;
};

struct native_names {
	struct image_source *images;
	struct module_map *map;
	struct module_files *files;
	struct module *modules; /* one for each range of the map, by the same index */
};

int native_names_create(struct module_map *map, struct image_source *images,
			struct module_files *files, struct native_names **ret_names)
{
	struct native_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->images = images;
	names->map = map;
	names->files = files;
	names->modules = calloc(map->nr_ranges + 1ull, sizeof(*names->modules));
	if (!names->modules) {
		native_names_destroy(names);
		return -ENOMEM;
	}
	*ret_names = names;
	return 0;
}

void native_names_destroy(struct native_names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; names->modules && i < names->map->nr_ranges; i++)
		module_files_put(names->files, names->modules[i].file);
	free(names->modules);
	free(names);
}

/* Read the symbols of the module's file and its debug file. Takes ownership of image. */
static void read_symbols(const struct native_names *names, const struct mapping *mapping,
			 struct module_file *file, struct image *image)
{
	file->has_read_symbols = true;
	file->symbols = function_symbols_create();
	if (!file->symbols) {
		image_close(image);
		return;
	}
	(void)function_symbols_add(file->symbols, image);
	if (!image_source_open_debug(names->images, mapping, &image))
		(void)function_symbols_add(file->symbols, image);
}

/* Identify the module's file, and read its symbols unless they have been read. */
static void read_module(const struct native_names *names, const struct mapping *mapping,
			struct module *module)
{
	struct image *image;

	module->is_read = true;
	if (image_source_open(names->images, mapping, &image))
		return;
	if (!image_load_bias(image, mapping, &module->load_bias)) {
		const struct module_file_id id = module_file_id_of_image(image);

		module->file = module_files_get(names->files, &id);
	}
	if (module->file && !module->file->has_read_symbols)
		read_symbols(names, mapping, module->file, image);
	else
		image_close(image);
}

void native_names_find(struct native_names *names, remote_addr addr, struct native_name *ret_name)
{
	const uint32_t index = module_map_find(names->map, addr);
	const struct module_range *range;
	struct module *module;
	const char *symbol = NULL;

	ret_name->name[0] = '\0';
	ret_name->path = "";
	ret_name->offset = addr;
	if (index == MODULE_MAP_NONE || !names->map->ranges[index].mapping->path[0])
		return;
	range = &names->map->ranges[index];
	module = &names->modules[index];
	ret_name->path = range->mapping->path;
	ret_name->offset = addr - range->start + range->mapping->file_offset;
	if (!module->is_read)
		read_module(names, range->mapping, module);
	if (module->file && module->file->symbols)
		symbol = function_symbols_find(module->file->symbols, addr - module->load_bias);
	if (symbol && !demangle(symbol, ret_name->name, sizeof(ret_name->name)))
		(void)snprintf(ret_name->name, sizeof(ret_name->name), "%s", symbol);
}
